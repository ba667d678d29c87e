"""The console: what is served, to whom, and that its script asks only for what there is."""

import base64
import hashlib
import json
import re
from pathlib import Path

import httpx

from pulumi_hosting.emulator import console
from pulumi_hosting.emulator.control import ROUTES
from tests.emulator.support import one_of_each
from tests.support.account import Account

SCRIPT = (Path(console.__file__).parent / "script.js").read_text(encoding="utf-8")


def opened(account: Account, method: str = "GET") -> httpx.Response:
    return account.http.request(method, "/_console")


def constant(name: str) -> str:
    """The text of an object literal of the script."""
    return re.split(r"^\};", SCRIPT.split(f"const {name} = {{\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


KINDS = json.loads("{" + constant("KINDS") + "}")
LEFT_OUT = {"accounts": ("account_id", "banned", "api_enabled_for_account")}
"""What the form for an object does not offer: the page adds the id, and has a button for a ban."""


def test_the_page_holds_no_data_and_loads_nothing(account: Account) -> None:
    account.order()
    response = opened(account)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "Date" in response.headers
    for secret in ("vk_live_", "vk_test_", "whsec_"):
        assert secret not in response.text.replace(constant_of_the_mask(), "")
    assert re.findall(r"https?://|<link(?! rel=\"icon\" href=\"data:,\")|\bsrc=|@import", response.text) == []
    # no inline handler or style: the policy would not run it
    assert re.findall(r"<[^>]* (?:on\w+|style)=", response.text) == []


def constant_of_the_mask() -> str:
    """The pattern with which the script masks what looks like a key."""
    found = re.search(r"const SECRET = (/.*/g);", SCRIPT)
    assert found
    return found[1]


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page(account: Account) -> None:
    response = opened(account)
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", response.text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'; " in policy


def test_methods_and_paths(account: Account) -> None:
    assert opened(account, method="POST").status_code == 405
    assert opened(account, method="HEAD").content == b""
    assert account.http.get("/_console/").text == opened(account).text
    assert account.http.get("/_console/x").status_code == 404
    assert account.control("GET", "/")["console_url"] == "http://emulator/_console"


def test_the_script_calls_what_the_control_interface_has() -> None:
    called = {
        (method, re.sub(r"\$\{[^}]*\}", "{id}", path.partition("?")[0]))
        for method, path in re.findall(r'control\("([A-Z]+)", ["`](/[^"`]*)["`]', SCRIPT)
    }
    known = {(route.method, route.path) for route in ROUTES}
    assert called <= known
    assert ("GET", "/") not in called  # its answer holds the keys
    assert {path for _, path in called} >= {"/objects", "/ledger", "/requests", "/faults", "/clock", "/reset"}


def test_the_script_shows_columns_that_rows_have(account: Account) -> None:
    objects = one_of_each(account)
    assert {*KINDS, "deliveries"} == set(objects)
    for kind, shown in KINDS.items():
        named = re.findall(r"{(\w+)}", shown.get("path", ""))
        assert {*shown["columns"], *shown.get("edit", ()), *named} <= set(objects[kind][-1]), kind


def test_the_script_changes_what_the_control_interface_changes() -> None:
    routes = {(route.method, re.sub(r"{\w+}", "{}", route.path)): route.body for route in ROUTES}
    for kind, shown in KINDS.items():
        path = re.sub(r"{\w+}", "{}", shown.get("path", ""))
        acts = list(shown.get("acts", {}).values())
        assert {(method, path + after) for method, after, *_ in acts} <= set(routes)
        assert ("DELETE", path) not in routes or ["DELETE", ""] in acts
        patch = routes.get(("PATCH", path))
        known = {field.alias or name for name, field in patch.model_fields.items()} if patch else set()
        assert {*shown.get("edit", ()), *LEFT_OUT.get(kind, ())} == known, kind
        assert {name for method, _, *body in acts if method == "PATCH" for name in body[0]} <= known


def test_the_faults_that_the_page_offers_can_be_armed(account: Account) -> None:
    offered = re.findall(r'^ +"[^"]+": (\{.*\}),$', constant("PRESETS"), flags=re.MULTILINE)
    assert len(offered) > 10
    for action in offered:
        account.fault(json.loads(re.sub(r"(\w+):", r'"\1":', action)))
    assert len(account.control("GET", "/faults")) == len(offered)
