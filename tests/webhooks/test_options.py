"""The options of a receiver: what is refused, where secrets come from, and that none is shown."""

from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.webhooks.receiver import Receiver
from pulumi_hosting.webhooks.receiver_options import ReceiverOptions, WebhookSecrets
from tests.webhooks.support import SECRET


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"secret": None},
            "no webhook secret. Next: set HOSTING_WEBHOOK_SECRET to the subscription's whsec_…",
        ),
        (
            {"secret": [SECRET, " "]},
            "secret holds what is no webhook secret (not shown). Next: set secret to ",
        ),
        ({"secret": "vk_live_abcdefghijkl"}, "secret holds what is no webhook secret"),
        ({"secret": f"{SECRET}\nwhsec_b"}, "secret holds what is no webhook secret"),
        ({"secret": None, "secret_file": __file__}, "secret_file holds what is no webhook secret"),
        ({"secret": None, "secret_file": "/nowhere/secret"}, "secret_file cannot be read: /nowhere/secret"),
        (
            {"secret": 4711},
            "webhook receiver: secret must be the subscription's whsec_…, or a list of them. "
            "Next: correct the options",
        ),
        ({"secret": [SECRET, 4711]}, "secret must be the subscription's whsec_…"),
        ({"sekret": SECRET}, "sekret is no option"),
        ({"port": None}, "port must be a whole number from 0 to 65535"),
        (
            {"port": 65536, "host": ""},
            "port must be a whole number from 0 to 65535; host must be an address to listen on",
        ),
        ({"tolerance": 301}, "tolerance must be a whole number of seconds from 1 to 300"),
        ({"path": "hosting"}, "path must be a path such as /hosting"),
        ({"certfile": "/nowhere/cert"}, "certfile and keyfile are no certificate"),
        (
            {"subscription": 1, "api_key": "vk_test_abcdefghijkl", "base_url": "https://api.example.com/v1"},
            "needs a live API key",
        ),
        ({"subscription": 1}, "no API key. Next: set HOSTING_API_KEY"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], message: str, state_file: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Receiver(
            ReceiverOptions.from_values(
                {"port": 0, "secret": SECRET, "state_file": str(state_file), **options}
            )
        )
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_every_option_says_what_it_must_be() -> None:
    assert [name for name, field in ReceiverOptions.model_fields.items() if not field.description] == []


def test_where_events_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    path = ReceiverOptions.from_values({"port": "5000"}).state_path
    assert path == tmp_path / ".local/state/hosting/webhook-5000.sqlite"
    monkeypatch.setenv("XDG_STATE_HOME", "/var/lib")
    assert ReceiverOptions(port=5000).state_path == Path("/var/lib/hosting/webhook-5000.sqlite")
    assert ReceiverOptions.from_values({"port": 5000, "state_file": "~/kept"}).state_path == tmp_path / "kept"


def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_WEBHOOK_SECRET", "whsec_one, whsec_two")
    options = ReceiverOptions.from_values(
        {"port": 1, "secret": "whsec_three", "api_key": "vk_live_abcdefghijkl"}
    )
    given, environment = (
        WebhookSecrets(options),
        WebhookSecrets(ReceiverOptions(port=1)),
    )
    assert [secret.reveal() for secret in given.current()] == ["whsec_three"]
    assert [secret.reveal() for secret in environment.current()] == ["whsec_one", "whsec_two"]
    assert "whsec" not in repr(options) + repr(given) + repr(environment)
    assert "vk_live" not in repr(options)
