"""Key, address and options: what is taken, what is refused, and that a refusal never repeats what it
refuses."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.api.values import is_loopback
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.settings import Settings, _version, settings
from tests.client.support import BASE, KEY


def checked(api_key: Any = KEY, base_url: str | None = BASE, **changes: Any) -> Settings:
    given: dict[str, Any] = {
        "timeout": 30,
        "deadline": 120,
        "ca_file": None,
        "user_agent": None,
        "environ": {},
        **changes,
    }
    return settings(api_key, base_url, **given)


def test_parameters_go_before_the_environment() -> None:
    environ = {"HOSTING_API_KEY": "vk_test_environment", "HOSTING_BASE_URL": "https://other.example.com/v1"}
    assert checked(environ=environ).api_key == Secret(KEY)
    assert checked(environ=environ).base_url == BASE
    from_environment = checked(None, None, environ=environ)
    assert from_environment.api_key == Secret("vk_test_environment")
    assert from_environment.base_url == "https://other.example.com/v1"


def test_a_key_is_stripped_and_may_come_wrapped() -> None:
    assert checked(f"  {KEY}\n").api_key == Secret(KEY)
    assert checked(Secret(KEY)).api_key == Secret(KEY)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "   ",
        "short",
        "vk_live_with space0000",
        "vk_live_line\nbreak0000",
        "vk_live_ümlaut00000",
        "vk_live_\x00null00000",
        "x" * 257,
    ],
)
def test_an_odd_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="HOSTING_API_KEY") as caught:
        checked(key)
    assert not key.strip() or key.strip() not in str(caught.value)


def test_the_hint_of_a_key_is_its_prefix_and_its_end() -> None:
    assert checked().key_hint == "vk_live_…CDEF"
    assert checked("vk_test_123456").key_hint == "vk_test_…"
    assert checked("another-names-token-99").key_hint == "…n-99"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://api.example.com:8443/api/v1", "https://api.example.com:8443/api/v1"),
        ("http://127.0.0.1:4010/v1", "http://127.0.0.1:4010/v1"),
        ("http://localhost/v1", "http://localhost/v1"),
        ("http://[::1]:4010/v1", "http://[::1]:4010/v1"),
        ("HTTPS://API.example.com/v1", "https://api.example.com/v1"),
    ],
)
def test_addresses_that_are_taken(given: str, kept: str) -> None:
    assert checked(base_url=given).base_url == kept


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "http://127.0.0.1.example.com/v1",
        "http://localhost.example.com/v1",
        "http://10.0.0.1/v1",
        "ftp://api.example.com/v1",
        "api.example.com/v1",
        "https://",
        "https://api.example.com/v1?key=canary",
        "https://api.example.com/v1#canary",
        "https://api.example.com/v1?",
        "https://user:canary@api.example.com/v1",
        "https://canary@api.example.com/v1",
        "https://api.example.com:port/v1",
        "https://api.example.com:99999/v1",
        "https://api.example.com/../v1",
        "https://api.example.com/./v1",
        "https://api.example.com//v1",
        "https://api.example.com/v%31",
        "https://api.example.com/v1\\canary",
        "https://api.exa mple.com/v1",
        "https://[::1/v1",
        "",
        "  ",
    ],
)
def test_addresses_that_are_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="HOSTING_BASE_URL") as caught:
        checked(base_url=url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": float("nan")},
        {"deadline": -1},
        {"deadline": float("inf")},
        {"ca_file": "/nowhere/ca.pem"},
        {"user_agent": "two\nlines"},
        {"user_agent": ""},
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        checked(**options)


def test_the_identification_carries_the_version_and_the_callers_words(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    found = checked(user_agent="ansible/2.19", ca_file=bundle)
    assert found.user_agent.startswith("pulumi-hosting/")
    assert found.user_agent.endswith(" ansible/2.19")
    assert found.ca_file == str(bundle)


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False), ("a.b", False)],
)
def test_loopback_addresses_are_recognised(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_settings_do_not_print_the_key() -> None:
    assert KEY not in repr(checked())


def test_the_version_is_known_without_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    _version.cache_clear()
    assert checked().user_agent == "pulumi-hosting/0"
    _version.cache_clear()


@pytest.mark.parametrize("odd", [5, b"vk_live_bytes", ["vk_live_list"], object()])
def test_what_is_no_text_is_refused_as_no_key_and_no_address(odd: Any) -> None:
    with pytest.raises(ConfigurationError, match="no API key"):
        checked(odd)
    with pytest.raises(ConfigurationError, match="no base URL"):
        checked(base_url=odd)
