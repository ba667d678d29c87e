"""Values that would be refused, or mean something else, after money moved: refused by name before anything is
sent.
"""

import base64
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pulumi_hosting.api import models as m
from pulumi_hosting.api.operations import BY_ID, MAX_BODY_BYTES, OPERATIONS
from pulumi_hosting.api.values import look_alike
from pulumi_hosting.client.exceptions import InvalidInput
from tests.client.support import scripted

KEY_TEXT = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
ECDSA = (
    "ecdsa-sha2-nistp256 "
    "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5"
    "wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg="
)


def rsa(bits: int = 2048, **changes: bytes) -> str:
    parts = {
        "kind": b"ssh-rsa",
        "e": b"\x01\x00\x01",
        "n": b"\x00\xc3" + b"\x11" * (bits // 8 - 1),
        **changes,
    }
    return (
        "ssh-rsa "
        + base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts.values())).decode()
    )


# (operation, ids, field, body around it, refused values)
REFUSED: list[tuple[str, tuple[int, ...], str, dict[str, Any], list[Any]]] = [
    (
        "create_server",
        (),
        "name",
        {"tariff_id": 1, "os": "debian-12"},
        [
            "",
            "-a",
            "a-",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "a" * 64,
            "x." * 200 + "x",
            "a\n",
            "ä",
            "a.-b",
            7,
            True,
        ],
    ),
    ("create_server", (), "months", {"tariff_id": 1, "os": "debian-12"}, [True, False, 1.0, "1", 2, 10**30]),
    ("create_server", (), "hours", {"tariff_id": 1, "os": "debian-12"}, [True, 1.0, "1", 0, 721, 10**30]),
    ("create_server", (), "tariff_id", {"os": "debian-12"}, [True, 1.0, "1", 0, 2**63]),
    (
        "create_server",
        (),
        "ssh_key_ids",
        {"tariff_id": 1, "os": "debian-12"},
        [[True], ["1"], [1.0], [2**63]],
    ),
    ("create_server", (), "os", {"tariff_id": 1}, ["debian\x00", "\ud800", ""]),
    ("renew_server", (1,), "months", {}, [True, 1.0, "1"]),
    ("renew_server", (1,), "hours", {}, [True, 1.0, "1"]),
    ("add_server_ip", (1,), "count", {}, [True, 1.0, "1", 2]),
    ("renew_domain", (1,), "years", {}, [True, 1.0, "1", 0, 11]),
    (
        "update_server",
        (1,),
        "notes",
        {},
        ["x" * 70_000, "a\ud800", "a\x00b", "a\x1b[31m", "a\rb", '"' * 31_000, 5],
    ),
    ("update_server", (1,), "name", {}, ["-a", ".", "a..b"]),
    ("update_server", (1,), "auto_renew", {}, [1, 0, "true"]),
    (
        "set_domain_nameservers",
        (1,),
        "nameservers",
        {},
        [
            ["1.2.3.4", "5.6.7.8"],
            ["ns1.example.net", "2001:db8::1"],
            ["ns1.example.net", "-a.example.net"],
            ["ns1.example.net", "a\x00.b"],
        ],
    ),
    ("set_server_ip_ptr", (1, 2), "domain", {}, ["1.2.3.4", "single", "a..b", "-a.example.com"]),
    (
        "register_domain",
        (),
        "name",
        {},
        [
            "exam\u200bple.com",
            "exam\u00adple.com",
            "\u2060example.com",
            "example\u3164.com",
            "exa\ufe0fmple.com",
            "exam ple.com",
            "example.com\n",
            "a..com",
            "-a.com",
            "single",
            "m\u00fcnchen..de",
            "\ud800.com",
        ],
    ),
    (
        "create_webhook",
        (),
        "url",
        {"events": ["ping"]},
        [
            "https://a..b/",
            "https://.a.b/",
            "https://a.b\x00/",
            "https://[v1.a]/",
            "https://h.example.org:0/",
            "https://h.example.org:99999/",
            "https://h.example.org:x/",
            "https://[::1/",
            "https://hooks.example.org/a b",
            "https://hooks.example.org/\n",
            "https://hoo\u200bks.example.org/",
            "http://hooks.example.org/",
            "https://user@hooks.example.org/",
            "https:///path",
        ],
    ),
    (
        "create_webhook",
        (),
        "description",
        {"events": ["ping"], "url": "https://hooks.example.org/"},
        ["a\x00b", "\ud800", "a\nb"],
    ),
    (
        "create_ssh_key",
        (),
        "public_key",
        {"name": "a"},
        [
            "ssh-ed25519 ÄÄÄÄ",
            "ssh-ed25519 AAAA",
            f"ssh-ed25519 {KEY_TEXT[:-4]}",
            f"ssh-ed25519 {KEY_TEXT[:-1]}",
            f"ssh-ed25519 {KEY_TEXT}AAAA",
            f"ssh-ed25519 {KEY_TEXT}=",
            f"ssh-rsa {KEY_TEXT}",
            f"ssh-ed25519 {KEY_TEXT} comment\x00",
            f"ssh-ed25519 {KEY_TEXT}\nssh-ed25519 {KEY_TEXT}",
            f"ssh-ed25519\n{KEY_TEXT}",
            rsa(512),
            rsa(n=b"\xc3" + b"\x11" * 255),
            rsa(e=b""),
            rsa(kind=b"ssh-dss"),
            ECDSA.replace("nistp256 ", "nistp384 "),
            "-----BEGIN OPENSSH PRIVATE KEY-----",
        ],
    ),
    ("create_ssh_key", (), "name", {"public_key": f"ssh-ed25519 {KEY_TEXT}"}, ["a\nb", "\ud800", ""]),
    (
        "create_topup",
        (),
        "amount",
        {"gateway": "card"},
        [
            10**27,
            1e27,
            10**5000,
            Decimal("1E+27"),
            Decimal("NaN"),
            Decimal("sNaN"),
            Decimal("Infinity"),
            float("nan"),
            float("inf"),
            -1,
            "1e2",
            "\u0665.00",
            "5.00\n",
            True,
            1.001,
        ],
    ),
    (
        "list_transactions",
        (),
        "since",
        {},
        [
            datetime.fromisoformat("0001-01-01T00:00:00+14:00"),
            datetime.fromisoformat("9999-12-31T23:59:59-14:00"),
            datetime.fromisoformat("2026-01-01T00:00:00"),
        ],  # without a zone: what is refused
    ),
]
CASES = [
    (operation, ids, field, {**body, field: value})
    for operation, ids, field, body, values in REFUSED
    for value in values
]


@pytest.mark.parametrize(
    ("operation", "ids", "field", "fields"),
    CASES,
    ids=[(f"{case[0]} {case[2]} {n}") for n, case in enumerate(CASES)],
)
def test_it_is_refused_by_the_name_of_its_field_and_nothing_is_sent(
    operation: str, ids: tuple[int, ...], field: str, fields: dict[str, Any]
) -> None:
    client, script = scripted(AssertionError("sent"))
    row = next(row for row in OPERATIONS if row.id == operation)
    given: dict[str, Any] = {"body": fields} if row.request is not None else {"query": fields}
    with pytest.raises(InvalidInput) as caught:
        client.call(operation, *ids, **given)
    assert {name.split(".")[0] for name in caught.value.fields} <= {field, "(fields)"}
    assert field in str(caught.value)
    assert script.requests == []


@pytest.mark.parametrize(
    "name", ["web-1", "a", "a.b", "web_1.example.com", "A-9", "1.2.3.4", "a" * 63, f"{'a' * 63}.{'b' * 63}"]
)
def test_names_that_a_server_may_have(name: str) -> None:
    assert m.ServerCreate(tariff_id=1, os="debian-12", name=name).name == name


@pytest.mark.parametrize("notes", ["", "line one\nline two\ttab", "Ünïcödé 🙂", "x" * 61_000])
def test_notes_that_a_server_may_have_leave_room_for_the_ownership_tag(notes: str) -> None:
    client, _ = scripted(AssertionError("reached"))
    request = client._prepare(BY_ID["update_server"], (1,), {}, {"notes": notes})
    assert request.body is not None
    assert len(request.body) + 1024 <= MAX_BODY_BYTES


@pytest.mark.parametrize(
    "key", [f"ssh-ed25519 {KEY_TEXT}", (f"ssh-ed25519 {KEY_TEXT} me @ hóme"), rsa(), rsa(4096), ECDSA]
)
def test_whole_keys_are_taken(key: str) -> None:
    assert m.SshKeyCreate(name="a", public_key=key).public_key == key


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.org/in?a=b",
        "https://hooks.example.org:8443/",
        "https://93.184.216.34/x",
        "https://münchen.example/é",
    ],
)
def test_urls_that_can_be_sent_to_are_taken(url: str) -> None:
    assert m.SubscriptionCreate(url=url, events=["ping"]).url == url


@pytest.mark.parametrize(
    "name", ["example.com", "EXAMPLE.com.", "münchen.de", "日本語.jp", "xn--mnchen-3ya.de", "пример.рф"]
)
def test_domains_that_can_be_seen_are_taken(name: str) -> None:
    assert m.DomainRegister(name=name).name == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("\u0430pple.com", ["Cyrillic", "Latin"]),
        ("xn--pple-43d.com", ["Cyrillic", "Latin"]),
        ("\u0430\u0440\u0440.com", ["look like Latin"]),
        ("g\u03bf\u03bfgle.com", ["Greek", "Latin"]),
    ],
)
def test_a_name_that_looks_like_another_is_reported(name: str, words: list[str]) -> None:
    found = look_alike(name)
    assert found is not None
    assert all(word in found for word in words)


@pytest.mark.parametrize(
    "name",
    [
        "example.com",
        "münchen.de",
        "пример.рф",
        "xn--e1afmkfd.xn--p1ai",
        "日本語カタカナひらがな.jp",
        "ελλάδα.gr",
        "xn--\x00.com",
        "xn--zz--.com",
    ],
)
def test_an_ordinary_name_is_not_reported(name: str) -> None:
    assert look_alike(name) is None


@given(st.text(max_size=80))
def test_any_text_is_taken_or_refused_by_every_rule(text: str) -> None:
    look_alike(text)
    rules: list[tuple[type[m.RequestModel], str, dict[str, Any]]] = [
        (m.ServerUpdate, "notes", {}),
        (m.ServerUpdate, "name", {}),
        (m.SshKeyCreate, "public_key", {"name": "a"}),
        (m.DomainRegister, "name", {}),
        (m.SubscriptionCreate, "url", {"events": ["ping"]}),
        (m.PtrUpdate, "domain", {}),
    ]
    for model, field, rest in rules:
        with suppress(ValidationError):
            model.model_validate({field: text, **rest})
