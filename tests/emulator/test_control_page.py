"""The page that describes the control interface lists all there is."""

import json
import re
from pathlib import Path

from pulumi_hosting.emulator.control import ROUTES
from pulumi_hosting.emulator.control.switches import FaultAction
from pulumi_hosting.emulator.store import VARIANTS
from pulumi_hosting.emulator.tasks import TASKS
from tests.emulator.support import PUBLIC_KEY, one_of_each
from tests.support.account import Account

# --- the page that describes it ---------------------------------------------------------------------------

TEXT = (Path(__file__).parents[2] / "docs" / "emulator-control.md").read_text()


def section(title: str) -> str:
    return re.split(r"^#+ ", TEXT.split(f"# {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(title: str) -> list[str]:
    return [line.split("|")[1].strip() for line in section(title).splitlines() if line.startswith("| `")]


def test_the_page_lists_every_call() -> None:
    described = [re.match(r"`(\w+ [^`]+)`", cell) for cell in first_cells("Calls")]
    known = [f"{route.method} {route.path}" for route in ROUTES]
    assert sorted(found[1] for found in described if found) == sorted(known)


def test_the_page_lists_every_field_of_a_call(account: Account) -> None:
    """The refusal of an unknown field lists the known ones: those of the page."""
    made = {
        "servers": account.server(),
        "domains": account.domain(),
        "webhooks": account.subscribe()["id"],
        **dict.fromkeys(("tariffs", "locations", "images", "zones"), 1),
    }
    made["ssh-keys"] = account.api("POST", "/ssh-keys", {"name": "a", "public_key": PUBLIC_KEY}).json()["id"]
    made["ips"] = account.api("GET", f"/servers/{made['servers']}/ips").json()["data"][0]["id"]
    for cell in first_cells("Calls"):
        found = re.match(r"`(\w+) ([^`]+)` `(\{.+\})`", cell)
        if not found or found[3] == "{}" or found[2] == "/webhook-routes":
            continue
        path = re.sub(r"/([a-z-]+)/\{\w+\}", lambda part: f"/{part[1]}/{made[part[1]]}", found[2])
        words = set(
            re.findall(
                r'"(\w+)"\??(?=[:,}])',
                re.sub(
                    r": \{…\}|: \[…\]|: \"\w+\" or "
                    r"\"\w+\"",
                    "",
                    found[3],
                ),
            )
        )
        answer = account.http.request(found[1], f"/_control{path}", json={"no_such_field": 1})
        assert answer.status_code == 400, cell
        assert set(answer.json()["error"].partition("known: ")[2].split(", ")) == words, cell


def test_the_page_lists_every_behaviour_variant() -> None:
    rows = [line.split("|") for line in section("Behaviour variants").splitlines() if line.startswith("| `")]
    described = {
        row[1].strip("` "): [json.loads(value) for value in re.findall(r"`([^`]+)`", row[2])] for row in rows
    }
    assert described == {name: list(values) for name, values in VARIANTS.items()}


def test_the_page_lists_every_fault_action() -> None:
    described = {name for cell in first_cells("Faults") for name in re.findall(r'"(\w+)"(?:\?|:)', cell)}
    assert described - {"Date"} == set(FaultAction.model_fields)


def test_the_page_lists_every_field_of_requests_and_movements(account: Account) -> None:
    account.server()
    for path in ("/requests", "/ledger", "/due"):
        (line,) = [line for line in section("Calls").splitlines() if line.startswith(f"| `GET {path}`")]
        named = set(re.findall(r'"(\w+)"', line))
        assert set(account.control("GET", path)[0]) == named
    described = line.partition("`what`: ")[2].partition("; ")[0]
    assert set(re.findall(r"`([a-z_]+)`", described)) == {*TASKS, "deliver"}


def test_the_page_lists_fields_of_objects(account: Account) -> None:
    objects = one_of_each(account)
    assert set(re.findall(r"`(\w+)`", section("Objects").split("Every row")[0])) == set(objects)
    for line in section("Objects").splitlines():
        if line.startswith("| `"):
            _, kind, has, _ = line.split("|")
            row = objects[kind.strip("` ")][-1]
            named = set(re.findall(r"`(\w+)`", has))
            assert named <= set(row), (kind, named - set(row))
            assert (row["kind"], type(row["id"])) == (kind.strip("` "), int)
    assert {(row["price_monthly"], row["currency"]) for row in objects["servers"]} == {("5.00", "EUR")}
    assert objects["addresses"][2]["account_id"] == objects["accounts"][0]["id"]
