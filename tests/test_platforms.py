"""Platforms. Where locks cannot work, both frontends refuse a purchase with one line, and send nothing."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pulumi_hosting.client.exceptions import HostingError
from pulumi_hosting.rehearsal import warm_python
from tests.ansible.in_process import Play
from tests.provider.processes import WEB, provider_process
from tests.support.account import Account


def windows(_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)


def network_disk(_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)


def not_private(directory: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir(mode=0o755)


def not_a_directory(directory: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    directory.write_text("")


@pytest.fixture(
    params=[windows, network_disk, not_private, not_a_directory], ids=lambda machine: str(machine.__name__)
)
def unusable(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine where locks cannot work; what the refusal says."""
    machine: Callable[[Path, pytest.MonkeyPatch], None] = request.param
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))
    machine(tmp_path / "run", monkeypatch)
    return {
        "windows": "has no POSIX file locks",
        "network_disk": "its file system has no locks",
        "not_private": "can be used by others (mode 755)",
        "not_a_directory": "is not a directory",
    }[machine.__name__]


def assert_refused(account: Account, message: str, expected: str) -> None:
    assert expected in message
    assert "Next: " in message
    assert "\n" not in message
    assert account.charges == 0
    assert account.requested("POST") == []


def test_pulumi_refuses_to_buy(unusable: str) -> None:
    account = Account()
    process = provider_process(account)
    with pytest.raises(HostingError) as refused:
        process.create("server", "web", WEB)
    assert_refused(account, str(refused.value), unusable)


def test_ansible_refuses_to_buy(unusable: str) -> None:
    account = Account()
    result = Play(account)("server", name="web", tariff_id=1, os="debian-12")
    assert result["failed"]
    assert_refused(account, result["msg"], unusable)


@pytest.mark.parametrize(("platform", "is_forked"), [("linux", True), ("darwin", False)])
def test_a_rehearsal_forks_on_linux_only(
    platform: str, is_forked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sys, "executable", warm_python.PYTHON)  # the test's own may be warm already
    with warm_python.forked():
        assert (sys.executable != warm_python.PYTHON) is is_forked
