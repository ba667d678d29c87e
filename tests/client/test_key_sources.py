"""The API key from a file or from a command: what is taken, what is refused, and that neither the key nor the
command is shown."""

import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client import settings as module
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError, Unauthorized
from pulumi_hosting.client.settings import key_of_environment, settings
from tests.client.support import BASE, KEY, refusal
from tests.client.test_secrets import frames

FILE, COMMAND = "HOSTING_API_KEY_FILE", "HOSTING_API_KEY_COMMAND"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "a key"
    path.write_text(f"{KEY}\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def nothing_ran_before() -> Iterator[None]:
    module._key_of_command.cache_clear()
    yield
    module._key_of_command.cache_clear()


def command(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def refused(environ: dict[str, str]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        key_of_environment(environ)
    return str(caught.value)


def client_settings(api_key: str | Secret | None, environ: dict[str, str]) -> Secret:
    times: dict[str, Any] = {"timeout": 30, "deadline": 120, "ca_file": None, "user_agent": None}
    return settings(api_key, BASE, environ=environ, **times).api_key


def test_the_file_holds_the_key(key_file: Path) -> None:
    assert client_settings(None, {FILE: str(key_file)}) == Secret(KEY)


def test_the_output_of_the_command_is_the_key() -> None:
    assert client_settings(None, {COMMAND: command(f"print({KEY!r})")}) == Secret(KEY)


def test_the_command_runs_once_and_without_a_shell(tmp_path: Path) -> None:
    log = tmp_path / "runs"
    run = f"import sys; open({str(log)!r}, 'a').write(sys.argv[1]); print({KEY!r})"
    environ = {COMMAND: f"{command(run)} '$HOME;x'"}
    assert [key_of_environment(environ), key_of_environment(environ)] == [Secret(KEY)] * 2
    assert log.read_text(encoding="utf-8") == "$HOME;x"


def test_the_command_has_no_input_and_the_environment() -> None:
    code = "import os, sys; assert not sys.stdin.read(); print(os.environ['PATH'] and 'vk_test_123456')"
    assert key_of_environment({COMMAND: command(code)}) == Secret("vk_test_123456")


def test_a_refused_key_names_its_source(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a frontend found the key in the environment, and passes it on."""
    sources = {FILE: str(key_file), COMMAND: command("print('vk_test_of_command')")}
    for name, value in {**sources, "HOSTING_API_KEY": " vk_test_of_variable "}.items():
        monkeypatch.setenv(name, value)
        for given in (None, key_of_environment({name: value})):
            assert f"Next: check {name}, or" in refusal_of(given)
        monkeypatch.delenv(name)
    assert "Next: check api_key, or" in refusal_of(Secret("vk_test_of_parameter"))


def refusal_of(api_key: Secret | None) -> str:
    transport = httpx.MockTransport(lambda request: refusal(401, "invalid_token"))
    with Client(api_key, BASE, transport=transport) as client, pytest.raises(Unauthorized) as caught:
        client.me()
    return str(caught.value)


def test_an_empty_variable_is_not_given(key_file: Path) -> None:
    assert key_of_environment({}) is None
    assert key_of_environment({"HOSTING_API_KEY": "", FILE: " ", COMMAND: ""}) is None
    assert key_of_environment({"HOSTING_API_KEY": "", FILE: str(key_file), COMMAND: ""}) == Secret(KEY)


@pytest.mark.parametrize(
    "names", [("HOSTING_API_KEY", FILE), ("HOSTING_API_KEY", COMMAND), (FILE, COMMAND)], ids=str
)
def test_several_are_refused_even_if_a_frontend_passes_the_key_on(names: tuple[str, str]) -> None:
    environ = dict.fromkeys(names, KEY)
    assert refused(environ).startswith(f"{names[0]} and {names[1]} are set, ")
    if "HOSTING_API_KEY" in names:
        with pytest.raises(ConfigurationError, match="unset all but one"):
            client_settings(Secret(KEY), environ)


def test_a_parameter_is_taken_whatever_the_environment_says() -> None:
    assert client_settings("vk_test_parameter", {FILE: "/nowhere", COMMAND: "false"}) == Secret(
        "vk_test_parameter"
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644])
def test_a_file_that_others_can_read_or_write_is_refused(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    text = refused({FILE: str(key_file)})
    assert f"(mode {mode:04o}). Next: chmod 600 '{key_file}'" in text
    assert KEY not in text


@pytest.mark.parametrize(("mode", "is_taken"), [(0o440, True), (0o400, True), (0o444, False), (0o460, False)])
def test_root_may_let_a_service_read_its_credential(
    key_file: Path, mode: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file.chmod(mode)

    def of_root(descriptor: int) -> os.stat_result:
        found = list(real(descriptor))
        found[4] = 0
        return os.stat_result(found)

    real = os.fstat
    monkeypatch.setattr(os, "fstat", of_root)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if is_taken:
        assert key_of_environment({FILE: str(key_file)}) == Secret(KEY)
    else:
        assert "other users" in refused({FILE: str(key_file)})


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is no file" in refused({FILE: str(tmp_path / "pipe")})
    assert "cannot be read: Is a directory" in refused({FILE: str(tmp_path)})
    assert "cannot be read: No such file" in refused({FILE: str(tmp_path / "none")})


def test_an_empty_file_is_named_as_such(key_file: Path) -> None:
    key_file.write_text("\n", encoding="utf-8")
    assert f"no API key. Next: write it into the file of {FILE}" in refused({FILE: str(key_file)})


def test_a_key_in_place_of_a_path_or_a_command_is_not_shown(key_file: Path) -> None:
    key_file.write_text(f"{KEY} {KEY}", encoding="utf-8")
    for environ in ({FILE: KEY}, {FILE: str(key_file)}, {COMMAND: KEY}, {COMMAND: f"{KEY} '"}):
        (variable,) = environ
        text = refused(environ)
        assert variable in text
        assert "Next: " in text
        assert KEY not in text


def test_what_the_command_prints_as_its_error_is_shown_and_its_output_never() -> None:
    code = f"import sys; print({KEY!r}); sys.exit('permission denied\\nfor {KEY} and vk_live_another1')"
    with pytest.raises(ConfigurationError) as caught:
        client_settings(None, {COMMAND: command(code)})
    text = str(caught.value)
    assert "HOSTING_API_KEY_COMMAND: the command ended with exit code 1: permission denied for ****" in text
    assert "Next: run it in a shell" in text
    for shown in (text, *traceback.format_exception(caught.value)):
        assert KEY not in shown
        assert "vk_live_another1" not in shown
    assert caught.value.__context__ is None
    frame = [line for line in frames(caught.value) if "environ = " not in line and "command = " not in line]
    assert frame
    assert not any(KEY in line for line in frame)


def test_a_command_that_prints_nothing_or_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the command printed no key. Next: " in refused({COMMAND: command("")})
    monkeypatch.setattr(module, "_COMMAND_SECONDS", 0.5)
    slow = f"import sys, time; print({KEY!r}, flush=True); time.sleep(60)"
    text = refused({COMMAND: command(slow)})
    assert "the command did not end within " in text
    assert KEY not in text
