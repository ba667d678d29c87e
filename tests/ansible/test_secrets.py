"""No API key, password or private key is in the most verbose output of a run, nor in any file that it
leaves."""

import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.ansible.conftest import Ansible, Played
from tests.ansible.test_playbooks import refused, server

PASSWORD = "Zebra-Kettle-4711"
ANSWER = "Licence-0815-Kappa"
TOO_WEAK = "weakling-without-digit"
ELSEWHERE = {"ansible_connection": "elsewhere"}  # a real module
CONNECTIONS = {"ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).parent / "connection")}


def of_env(variable: str) -> str:
    return f"{{{{ lookup('ansible.builtin.env', '{variable}') }}}}"


@pytest.fixture
def key_pair() -> tuple[str, str]:
    """A private and a public half, made for this run."""
    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    ).decode()
    public = (
        private.public_key()
        .public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        .decode()
    )
    return text, f"{public} test"


def test_no_secret_is_shown_or_kept(ansible: Ansible, key_pair: tuple[str, str]) -> None:
    private, public = key_pair
    other_key = "vk_live_" + "q7" * 20
    variables = {
        "S_PASSWORD": PASSWORD,
        "S_WEAK": TOO_WEAK,
        "S_PRIVATE": private,
        "S_PUBLIC": public,
        "S_OTHER": other_key,
        "S_ANSWER": ANSWER,
    }
    order: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
    answers = {"licence": of_env("S_ANSWER")}
    played = ansible.play(
        {"name": "key", "hosting.cloud.ssh_key": {"name": "k", "public_key": of_env("S_PUBLIC")}},
        {
            "name": "mistake",
            "hosting.cloud.ssh_key": {"name": "k", "public_key": of_env("S_PRIVATE")},
            "ignore_errors": True,
        },
        server("order", name="web-1", password=of_env("S_PASSWORD"), custom_fields=answers, **order),
        {**server("order elsewhere", name="web-4", custom_fields=answers, **order), "vars": ELSEWHERE},
        {"name": "show", "hosting.cloud.server_info": {}},
        refused("weak", name="web-2", password=of_env("S_WEAK"), **order),
        refused("no such image", name="web-3", password=of_env("S_PASSWORD"), tariff_id=1, os="nowhere"),
        {
            "name": "other key",
            "hosting.cloud.server_info": {"api_key": of_env("S_OTHER")},
            "ignore_errors": True,
        },
        arguments=("-vvvv", "--diff"),
        environ={**variables, **CONNECTIONS, "HOSTING_LOG": "debug"},
    )
    assert "] POST /servers: 201 (" in played.output  # the debug log is searched too
    assert [line["outcome"] for line in played.lines] == [
        "ok",
        "failed",
        "ok",
        "ok",
        "ok",
        "failed",
        "failed",
        "failed",
    ]
    secrets = {
        "API key": ansible.emulator.live_key,
        "another API key": other_key,
        "password": PASSWORD,
        "refused password": TOO_WEAK,
        "answer of an order": ANSWER,
        **{
            f"private key, line {number}": line
            for number, line in enumerate(private.splitlines())
            if "PRIVATE KEY" not in line
        },
    }
    assert_unseen(ansible, played, secrets)
    assert "Traceback" not in played.output


def test_ansible_debug_shows_no_secret(ansible: Ansible) -> None:
    """ANSIBLE_DEBUG has Ansible print the arguments of every module, masked or not; the key in the
    environment is not among them."""
    environ = {**CONNECTIONS, "ANSIBLE_DEBUG": "1", "HOSTING_LOG": "debug"}
    played = ansible.play(
        refused("missing", id="4711", notes="?"),
        {**refused("missing elsewhere", id="4711", notes="?"), "vars": ELSEWHERE},
        arguments=("-vvvv",),
        environ=environ,
    )
    assert "done with _execute_module" in played.output
    assert (
        len(re.findall(r"^\S+ pulumi-hosting\[\d+\] GET /servers/4711: 404 ", played.output, re.MULTILINE))
        == 2
    )
    assert_unseen(ansible, played, {"API key": ansible.emulator.live_key})


def assert_unseen(ansible: Ansible, played: Played, secrets: dict[str, str]) -> None:
    kept = {path: path.read_bytes() for path in ansible.home.rglob("*") if path.is_file()}
    assert ansible.record in kept
    for name, secret in secrets.items():
        assert secret not in played.output, name
        assert [path for path, content in kept.items() if secret.encode() in content] == [], name
