"""Canaries: the API key, passwords, auth codes and webhook secrets are looked for everywhere a person could
read.
"""

import base64
import copy
import json
import logging
import pickle  # noqa: TID251  # to see that it is refused
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pydantic_core import PydanticSerializationError

from pulumi_hosting.api.secrets import MASK, Redactor, Secret, clean_text
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import HostingError
from tests.client.support import CLIENT_ONLY, KEY, answer, refusal, scripted

pytestmark = pytest.mark.usefixtures("both")

PASSWORD = "canary7Password"
AUTH_CODE = "canary/EPP+code 9"
WEBHOOK = "whsec_canary8"
ALL = (KEY, PASSWORD, AUTH_CODE, WEBHOOK)


def leaks(text: str) -> list[str]:
    """The secrets in a text, in any spelling they could travel in."""
    found = []
    for secret in ALL:
        raw = secret.encode()
        spellings = {
            secret,
            quote(secret, safe=""),
            base64.b64encode(raw).decode(),
            raw.hex(),
            json.dumps(secret)[1:-1],
        }
        found += [spelling for spelling in spellings if spelling in text]
    return found


def frames(error: BaseException) -> Iterator[str]:
    """Every local variable of our own frames, as a debugger or a crash reporter would print it."""
    trace = error.__traceback__
    while trace is not None:
        if "pulumi_hosting" in trace.tb_frame.f_code.co_filename:
            for name, value in trace.tb_frame.f_locals.items():
                yield f"{trace.tb_frame.f_code.co_name} {name} = {value!r}"
        trace = trace.tb_next


def echo(status: int) -> Callable[[httpx.Request], httpx.Response]:
    """A service that repeats everything it was sent, in every place of its error."""

    def answer_with_everything(request: httpx.Request) -> httpx.Response:
        said = f"{dict(request.headers)} {request.content.decode()} {request.url}"
        details = {"fields": {"password": said, said[:60]: "x"}, "required": [said], "status": said}
        return refusal(status, "validation_error", said, details, X_Request_ID="r1")

    return answer_with_everything


def fail(kind: type[Exception]) -> Callable[[httpx.Request], httpx.Response]:
    def fail_with_everything(request: httpx.Request) -> httpx.Response:
        raise kind(f"{request.headers.raw!r} {request.content!r}")

    return fail_with_everything


ACTS: dict[str, Callable[[Client], Any]] = {
    "order": lambda client: client.servers.create(tariff_id=1, os="debian-12", password=PASSWORD),
    "order, wrapped": lambda client: client.servers.create(
        tariff_id=1, os="debian-12", password=Secret(PASSWORD)
    ),
    "bad order": lambda client: client.servers.create(tariff_id=0, os="", password=PASSWORD),
    "bad password": lambda client: client.servers.create(
        tariff_id=1, os="debian-12", password=PASSWORD + "\n"
    ),
    "reinstall": lambda client: client.servers.reinstall(1, os="debian-12", password=PASSWORD),
    "bad reinstall": lambda client: client.servers.reinstall(
        1, os="debian-12", password=f"{PASSWORD} {PASSWORD}"
    ),
    "transfer": lambda client: client.domains.transfer(name="example.com", auth_code=AUTH_CODE),
    "bad transfer": lambda client: client.domains.transfer(name="", auth_code=AUTH_CODE * 40),
    "bad webhook": lambda client: client.webhooks.create(
        url=f"https://user:{PASSWORD}@hooks.example.org/in", events=["*"]
    ),
    "bad webhook, changed": lambda client: client.webhooks.update(
        1, url=f"https://user:{PASSWORD}@hooks.example.org/in"
    ),
    "read": lambda client: client.me(),
}
SERVICES: dict[str, Callable[[httpx.Request], httpx.Response]] = {
    "echo 400": echo(400),
    "echo 503": echo(503),
    "echo 418": echo(418),
    "protocol": fail(httpx.LocalProtocolError),
    "read": fail(httpx.ReadError),
    "late": fail(httpx.ReadTimeout),
    "html": lambda request: httpx.Response(200, text=f"<html>{request.content.decode()}{request.headers}"),
    "damaged": lambda request: answer(
        200, {"server": request.content.decode(), "server_id": [request.headers["Authorization"]]}
    ),
    "redirect": lambda request: httpx.Response(302, headers={"Location": f"https://{KEY}.example.org/{KEY}"}),
    "odd ids": lambda request: answer(
        500, {"error": {"code": KEY, "message": KEY, "request_id": KEY}}, X_Request_ID=KEY
    ),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_no_failure_shows_a_secret(
    act: Callable[[Client], Any],
    service: Callable[[httpx.Request], httpx.Response],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    client, _ = scripted(service)
    with pytest.raises(HostingError) as caught:
        act(client)
    error = caught.value
    assert leaks(str(error)) == []
    assert leaks(repr(error)) == []
    assert leaks(repr(vars(error))) == []
    assert leaks(caplog.text) == []
    assert leaks("".join(traceback.format_exception(error)).replace(f'"{KEY}"', "")) == []
    assert error.__context__ is None
    assert error.__cause__ is None
    # The argument itself is the caller's; our frames hold it wrapped.
    assert [line for line in frames(error) if leaks(line)] == []


@CLIENT_ONLY
def test_a_client_shows_its_key_nowhere() -> None:
    client, _ = scripted(answer(200, {"id": 1, "name": "a", "status": "active"}))
    client.servers.get(1)
    assert leaks(f"{client!r} {client} {vars(client)} {client.servers!r} {vars(client.servers)}") == []
    wire = client.transport
    assert leaks(f"{wire!r} {vars(wire)} {vars(wire._connection)} {wire._settings!r}") == []


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_that_holds_a_secret_can_be_pickled(protocol: int) -> None:
    client, _ = scripted()
    for thing in (
        client,
        client.servers,
        client.servers.ips,
        Secret(KEY),
        Redactor([KEY]),
        {"deep": [client]},
    ):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(thing, protocol)
        assert leaks(str(caught.value)) == []


def test_a_client_cannot_be_copied() -> None:
    client, _ = scripted()
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="make one where it is needed") as caught:
            copied(client)
        assert leaks(str(caught.value)) == []


@pytest.mark.parametrize(
    ("act", "body"),
    [
        (
            lambda client: client.servers.create(tariff_id=1, os="debian-12"),
            {
                "server": {"id": 1, "name": "a", "status": "active"},
                "charged": "1.00",
                "root_password": PASSWORD,
            },
        ),
        (
            lambda client: client.servers.reset_password(1),
            {"password": PASSWORD, "note": f"it is {PASSWORD}", "more": [{"said": PASSWORD}]},
        ),
        (
            lambda client: client.servers.reinstall(1, os="a"),
            {"server_id": 1, "status": "reinstalling", "root_password": PASSWORD},
        ),
        (lambda client: client.webhooks.rotate_secret(1), {"id": 1, "secret": WEBHOOK}),
        (
            lambda client: client.webhooks.create(url="https://hooks.example.org/", events=["ping"]),
            {
                "id": 1,
                "url": "https://hooks.example.org/",
                "events": ["ping"],
                "active": True,
                "secret": WEBHOOK,
            },
        ),
        (
            lambda client: client.servers.get(1),
            {"id": 1, "name": "a", "status": "active", "future_password": PASSWORD},
        ),
    ],
)
def test_what_is_shown_once_is_not_shown_by_accident(
    act: Callable[[Client], Any], body: dict[str, Any]
) -> None:
    client, _ = scripted(answer(201, body))
    result = act(client)
    assert leaks(f"{result!r} {result}") == []
    assert leaks(json.dumps(result.raw, default=str)) == []
    if "future_password" not in body:
        assert leaks(str(result.model_dump())) == []
        with pytest.raises(PydanticSerializationError) as caught:
            result.model_dump_json()
        assert leaks(str(caught.value)) == []
        assert MASK in repr(result)
        revealed = {value.reveal() for value in result.__dict__.values() if isinstance(value, Secret)}
        assert revealed & {PASSWORD, WEBHOOK}
        with pytest.raises(TypeError):
            pickle.dumps(result)


# --- the wrapping itself


def test_a_secret_prints_as_a_mask_and_compares_as_its_text() -> None:
    secret = Secret(PASSWORD)
    assert f"{secret} {secret!r} {secret:>20} {[secret]}".count(MASK) == 4
    assert secret == Secret(Secret(PASSWORD))
    assert secret != PASSWORD
    assert hash(secret) == hash(Secret(PASSWORD))
    assert (bool(secret), bool(Secret("")), len(secret)) == (True, False, len(PASSWORD))
    assert copy.copy(secret) is copy.deepcopy(secret) is secret
    assert secret.reveal() == PASSWORD
    assert sys.getsizeof(secret) > 0


def test_a_redactor_knows_every_spelling_and_leaves_short_words_alone() -> None:
    redact = Redactor([Secret(AUTH_CODE), KEY, None, "abc"])
    raw = AUTH_CODE.encode()
    said = (
        f"{AUTH_CODE} {quote(AUTH_CODE, safe='')} {base64.b64encode(raw).decode()} "
        f"{base64.urlsafe_b64encode(raw).decode()} {KEY} abc"
    )
    assert redact(said) == f"{MASK} {MASK} {MASK} {MASK} {MASK} abc"
    assert leaks(repr(redact)) == []


def test_text_from_outside_is_made_safe_to_print() -> None:
    assert clean_text("a\x1b[31mb\x1b]0;x\x07c\r\nd\te\x00\u202ef\x9b") == "ab0;xc  d ef"
    assert clean_text("x" * 50, 10) == "xxxxxxxxx…"
