"""Receivers for the tests in this folder."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.webhooks.support import Receivers, self_signed


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOSTING_WEBHOOK_SECRET", "HOSTING_API_KEY", "HOSTING_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def state_file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "events.sqlite"


@pytest.fixture
def receivers(state_file: Path, caplog: pytest.LogCaptureFixture) -> Receivers:
    caplog.set_level(logging.DEBUG)
    return Receivers(str(state_file), caplog)


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options for each."""
    if request.param == "http":
        return {}
    certificate = tmp_path / "certificate-and-key.pem"
    certificate.write_bytes(self_signed())
    return {"certfile": str(certificate)}
