"""Signatures of deliveries: which are trusted, and which are refused."""

import hashlib
import hmac
import json
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import ConfigurationError, HostingError, WebhookRejected
from pulumi_hosting.webhooks import parse, sign, verify, verify_signature
from pulumi_hosting.webhooks import signature as signature_module

SECRET = "whsec_canary1234567890"
NOW = 1_767_225_600
EVENT: dict[str, Any] = {
    "id": "evt_1",
    "type": "server.created",
    "created_at": "2026-01-01T00:00:00Z",
    "livemode": True,
    "account_id": 7,
    "api_version": "1",
    "data": {"object": {"id": 1, "name": "web"}, "previous": None},
    "resource": "/api/v1/servers/1",
}
BODY = json.dumps(EVENT).encode()
HEADERS = sign(BODY, SECRET, NOW)


def refused(
    body: bytes = BODY, headers: Mapping[str, str] = HEADERS, secret: Any = SECRET, now: float = NOW
) -> str:
    with pytest.raises(WebhookRejected) as caught:
        verify(body, headers, secret, now=now)
    assert caught.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(f'"{SECRET}"', "")
    return str(caught.value)


def with_header(name: str, value: str) -> dict[str, str]:
    return {**HEADERS, name: value}


def signature(body: bytes = BODY, secret: str = SECRET, stamp: str = str(NOW)) -> str:
    return hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


# --- trusted ----------------------------------------------------------------------------------------


def test_a_signed_delivery_is_an_event() -> None:
    event = verify(BODY, HEADERS, SECRET, now=NOW)
    assert (event.id, event.type, event.account_id) == ("evt_1", "server.created", 7)
    assert event.object == {"id": 1, "name": "web"}
    assert event.previous is None
    assert event == parse(BODY)


def test_the_signature_is_the_one_the_document_describes() -> None:
    assert {
        "X-Webhook-Signature": f"v1={signature()}",
        "X-Webhook-Timestamp": str(NOW),
        "X-Webhook-Id": "evt_1",
        "X-Webhook-Event": "server.created",
    } == HEADERS


def test_a_known_vector() -> None:
    # Computed with printf '1.{}' | openssl dgst -sha256 -hmac whsec_canary1234567890
    known = {
        "X-Webhook-Signature": "v1=e587bea586b9df4907b1f5fd1d3443dc29b726f9985ea1c29f66731abee006eb",
        "X-Webhook-Timestamp": "1",
    }
    verify_signature(b"{}", known, SECRET, now=1)


@pytest.mark.parametrize(
    "secret", [SECRET, Secret(SECRET), [SECRET], ["whsec_old", Secret(SECRET)], (Secret(SECRET), "whsec_new")]
)
def test_secrets_are_strings_wrapped_or_several(secret: Any) -> None:
    assert verify(BODY, HEADERS, secret, now=NOW).id == "evt_1"


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
def test_header_names_are_read_in_any_case(spelling: Any) -> None:
    assert (
        verify(BODY, {spelling(name): value for name, value in HEADERS.items()}, SECRET, now=NOW).id
        == "evt_1"
    )


@pytest.mark.parametrize(
    "header",
    [
        "v1={good}",
        "v1=0000,v1={good}",
        "v1={good},v1=0000",
        " v1={good} , v2=whatever",
        "v0=whatever,v1={good}",
        "nonsense,,=,v1={good}",
    ],
)
def test_one_matching_signature_among_several_is_enough(header: str) -> None:
    verify(BODY, with_header("X-Webhook-Signature", header.format(good=signature())), SECRET, now=NOW)


@pytest.mark.parametrize("off", [-300, -299.5, 0, 299.5, 300])
def test_the_time_may_be_300_seconds_off(off: float) -> None:
    verify(BODY, HEADERS, SECRET, now=NOW + off)


def test_the_tolerance_can_be_chosen() -> None:
    verify(BODY, HEADERS, SECRET, now=NOW + 900, tolerance=1000)
    verify_signature(BODY, HEADERS, SECRET, now=NOW + 900, tolerance=1000)


def test_without_a_time_the_present_one_is_used() -> None:
    import time

    stamped = sign(BODY, SECRET, int(time.time()))
    assert verify(BODY, stamped, SECRET).id == "evt_1"
    with pytest.raises(WebhookRejected, match="300 s away"):
        verify(BODY, HEADERS, SECRET, now=NOW + 10_000_000)


def test_the_event_header_may_be_absent() -> None:
    verify(
        BODY, {name: value for name, value in HEADERS.items() if name != "X-Webhook-Event"}, SECRET, now=NOW
    )


def test_previous_values_may_be_absent_null_or_present() -> None:
    for data, previous in [
        ({"object": {}}, None),
        ({"object": {}, "previous": None}, None),
        ({"previous": {"a": 1}}, {"a": 1}),
    ]:
        event = parse(json.dumps(EVENT | {"data": data}).encode())
        assert event.previous == previous
        assert event.object == {}


# --- refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [-301, 301, 1e9, -1e9, float("nan"), float("inf")])
def test_a_delivery_from_another_time_is_refused(off: float) -> None:
    assert "300 s away" in refused(now=NOW + off)


@pytest.mark.parametrize(
    "stamp",
    [
        "",
        " ",
        "now",
        "-1",
        "+1",
        "1.5",
        "1e9",
        "0x10",
        "1" * 13,
        "\u0661\u0662",
        f" {NOW}",
        f"{NOW}\n",
        "\u00b2",
        f"{NOW}, {NOW}",
    ],
)
def test_a_malformed_time_is_refused(stamp: str) -> None:
    assert "X-Webhook-Timestamp" in refused(headers=with_header("X-Webhook-Timestamp", stamp))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "v1=",
        "v1",
        "{good}",
        "v2={good}",
        "V1={good}",
        "v1={good}0",
        "v1 ={good}",
        "v1=\u00e9{good}",
        "v1=\u0661" * 3,
        "v1=\ud800",
        "sha256={good}",
    ],
)
def test_a_signature_that_does_not_match_is_refused(header: str) -> None:
    good = signature()
    assert "no signature" in refused(headers=with_header("X-Webhook-Signature", header.format(good=good)))


def test_another_secret_body_or_time_does_not_match() -> None:
    assert "no signature" in refused(secret="whsec_other")
    assert "no signature" in refused(secret=["whsec_other", Secret("whsec_third")])
    assert "no signature" in refused(body=BODY.replace(b"web", b"wev"))
    assert "no signature" in refused(body=BODY + b" ")
    assert "no signature" in refused(headers=with_header("X-Webhook-Timestamp", str(NOW + 1)))


@pytest.mark.parametrize("missing", ["X-Webhook-Signature", "X-Webhook-Timestamp", "X-Webhook-Id"])
def test_a_missing_header_is_refused(missing: str) -> None:
    assert missing in refused(headers={name: value for name, value in HEADERS.items() if name != missing})


@pytest.mark.parametrize("name", ["X-Webhook-Signature", "X-Webhook-Timestamp", "X-Webhook-Id"])
def test_a_repeated_header_is_refused(name: str) -> None:
    assert "more than once" in refused(headers={**HEADERS, name.lower(): HEADERS[name]})


def test_the_id_and_type_of_the_headers_must_be_those_of_the_body() -> None:
    assert "X-Webhook-Id" in refused(headers=with_header("X-Webhook-Id", "evt_2"))
    assert "X-Webhook-Event" in refused(headers=with_header("X-Webhook-Event", "server.terminated"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"not json",
        b"\xff",
        json.dumps(EVENT | {"id": 5}).encode(),
        json.dumps(EVENT | {"data": None}).encode(),
    ]
    + [json.dumps(EVENT | {"extra": number}).encode() for number in (float("nan"), 10**400)],
)
def test_a_signed_body_that_is_not_an_event_is_refused(body: bytes) -> None:
    stamped = {**HEADERS, "X-Webhook-Signature": f"v1={signature(body)}"}
    verify_signature(body, stamped, SECRET, now=NOW)
    assert "not an event" in refused(body=body, headers=stamped)
    with pytest.raises(WebhookRejected):
        sign(body, SECRET, NOW)


def test_a_body_larger_than_any_event_is_refused_unread() -> None:
    body = b" " * (signature_module.MAX_BODY_BYTES + 1)
    assert "larger" in refused(body=body, headers=with_header("X-Webhook-Signature", f"v1={signature(body)}"))


@pytest.mark.parametrize("secret", ["", "  ", Secret(""), [], [SECRET, ""], [Secret("")]])
def test_an_empty_secret_is_refused_before_it_accepts_everything(secret: Any) -> None:
    empty = {**HEADERS, "X-Webhook-Signature": f"v1={signature(secret='')}"}
    with pytest.raises(ConfigurationError, match="secret is empty"):
        verify(BODY, empty, secret, now=NOW)


@pytest.mark.parametrize("secret", [None, 5, [SECRET, 5], {SECRET: 1}, {SECRET}, object()])
def test_a_secret_is_text_or_bytes(secret: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        verify(BODY, HEADERS, secret, now=NOW)
    assert str(caught.value) in (
        "the webhook secret must be text, bytes or a Secret, or several of them",
        "the webhook secret is empty. Next: give the whsec_… of the subscription",
    )


@pytest.mark.parametrize(
    "times",
    [
        {"tolerance": -1},
        {"tolerance": float("inf")},
        {"tolerance": float("nan")},
        {"tolerance": True},
        {"tolerance": "300"},
        {"tolerance": None},
        {"now": True},
        {"now": "1767225600"},
    ],
    ids=str,
)
def test_times_are_numbers_of_seconds(times: dict[str, Any]) -> None:
    message = "^now and tolerance must be numbers of seconds, tolerance not below 0$"
    with pytest.raises(ConfigurationError, match=message):
        verify_signature(BODY, HEADERS, SECRET, **{"now": NOW, **times})


def test_no_tolerance_is_one_too() -> None:
    verify_signature(BODY, HEADERS, SECRET, now=NOW, tolerance=0)
    with pytest.raises(WebhookRejected, match="more than 0 s away"):
        verify_signature(BODY, HEADERS, SECRET, now=NOW + 0.5, tolerance=0)


@pytest.mark.parametrize(
    "headers", [None, 5, "text", [("X-Webhook-Id",)], [5], {"X-Webhook-Id": 5}, {5: "a"}]
)
def test_headers_are_pairs_of_strings(headers: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^the headers must be a mapping or pairs of strings$"):
        verify_signature(BODY, headers, SECRET, now=NOW)


def test_a_body_may_be_as_large_as_the_largest_event() -> None:
    body = b" " * signature_module.MAX_BODY_BYTES
    verify_signature(body, {**HEADERS, "X-Webhook-Signature": f"v1={signature(body)}"}, SECRET, now=NOW)


def test_a_time_has_up_to_twelve_digits() -> None:
    stamp = "1" * 12
    stamped = {"X-Webhook-Signature": f"v1={signature(stamp=stamp)}", "X-Webhook-Timestamp": stamp}
    verify_signature(BODY, stamped, SECRET, now=int(stamp))


def test_a_refusal_names_what_is_wrong_and_what_to_check() -> None:
    assert refused(now=NOW + 301) == (
        "the delivery's time is more than 300 s away. Next: check the clock of this machine"
    )
    assert refused(headers=with_header("X-Webhook-Id", "evt_2")) == "X-Webhook-Id is not the id of the event"
    assert refused(headers=with_header("X-Webhook-Event", "ping")) == (
        "X-Webhook-Event is not the type of the event"
    )
    assert refused(headers={}) == "X-Webhook-Timestamp is missing or not a number of seconds"
    assert refused(secret="whsec_other") == (
        "no signature in X-Webhook-Signature matches the body and the secret"
    )


def test_a_signature_is_made_with_one_secret_of_any_kind() -> None:
    assert sign(BODY, Secret(SECRET), NOW) == HEADERS
    assert sign(BODY, "sécret", NOW) != HEADERS
    verify(BODY, sign(BODY, "sécret", NOW), "sécret".encode(), now=NOW)


def test_a_secret_with_a_lone_surrogate_matches_nothing() -> None:
    assert "no signature" in refused(secret="whsec_\ud800")


@given(st.binary(), st.dictionaries(st.sampled_from([*HEADERS]), st.text()))
def test_any_unsigned_delivery_is_rejected(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(WebhookRejected):
        verify(body, headers, SECRET, now=NOW)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.text()),
    st.lists(st.none()),
)
# Hypothesis draws constants of the modules that are loaded: what a first call loads must be loaded by then.
verify(BODY, HEADERS, SECRET, now=NOW)
PAIRS = st.lists(st.tuples(st.one_of(ANYTHING, st.sampled_from([*HEADERS])), ANYTHING))


@given(ANYTHING, st.one_of(ANYTHING, PAIRS), st.one_of(ANYTHING, st.lists(ANYTHING)), ANYTHING, ANYTHING)
def test_arguments_of_any_type_raise_only_hosting_errors(
    body: Any, headers: Any, secret: Any, now: Any, tolerance: Any
) -> None:
    for given_body, given_headers, given_secret, given_now, given_tolerance in (
        (body, headers, secret, now, tolerance),
        (BODY, headers, SECRET, NOW, 300),
        (BODY, HEADERS, secret, NOW, 300),
        (BODY, HEADERS, SECRET, now, 300),
        (BODY, HEADERS, SECRET, NOW, tolerance),
        (body, HEADERS, SECRET, NOW, 300),
    ):
        with suppress(HostingError):
            verify(given_body, given_headers, given_secret, now=given_now, tolerance=given_tolerance)


@pytest.mark.parametrize(
    "headers",
    [
        [*HEADERS.items()],
        [(name.encode(), value.encode()) for name, value in HEADERS.items()],
        {name: [value] for name, value in HEADERS.items()},
        {**HEADERS, "X-Webhook-Signature": HEADERS["X-Webhook-Signature"].upper().replace("V1=", "v1=")},
    ],
    ids=["pairs", "bytes", "lists", "upper-case hex"],
)
def test_headers_of_several_frameworks(headers: Any) -> None:
    assert verify(BODY, headers, SECRET, now=NOW).id == "evt_1"


def test_a_secret_may_be_bytes_and_a_body_any_kind_of_bytes() -> None:
    assert verify(memoryview(BODY), HEADERS, SECRET.encode(), now=NOW).id == "evt_1"  # type: ignore[arg-type]  # bytes of another kind


def test_a_missing_id_is_reported_as_missing() -> None:
    without = {name: value for name, value in HEADERS.items() if name != "X-Webhook-Id"}
    assert refused(headers=without) == "X-Webhook-Id is missing"


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    real = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        assert isinstance(one, bytes)
        assert isinstance(other, bytes)
        compared.append(other)
        return real(one, other)

    monkeypatch.setattr(signature_module.hmac, "compare_digest", watched)  # type: ignore[attr-defined]  # the module that signature imported
    good = signature()
    verify(
        BODY, with_header("X-Webhook-Signature", f"v1={good},v1=00,v2=11"), [SECRET, "whsec_other"], now=NOW
    )
    # All are compared, with every secret, whether or not the first one matches.
    assert compared == [good.encode(), b"00"] * 2
