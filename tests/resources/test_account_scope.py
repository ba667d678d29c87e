"""What keeps the local files of one account apart from those of another."""

from pathlib import Path

import pytest

from pulumi_hosting.exactly_once import local_files
from tests.resources.conftest import ResourceHarness


def test_names_carry_no_key_material_and_keep_accounts_apart(
    harness: ResourceHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "run"
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(runtime))
    live = local_files.account_scope(harness.context().client)
    test = local_files.account_scope(harness.context(key=harness.account.test_key).client)
    assert live == local_files.account_scope(harness.context().client)
    assert live != test
    with local_files.lock(live, "server 20001", 1):
        pass
    assert all(harness.account.live_key[8:] not in path.name for path in runtime.iterdir())
