"""Modules run in the controller and as a process on another host. The same play has the same results."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible.conftest import Ansible, Played
from tests.ansible.test_playbooks import KEY_LINE, OTHER_LINE
from tests.ansible.test_secrets import of_env
from tests.ansible.test_specs import MODULES
from tests.ansible.test_specs import module as spec_of

Task = dict[str, Any]
# Not written in the play: Ansible prints the lines around a failed task.
SECRETS = {
    "S_PASSWORD": "Zebra-Kettle-4711",
    "S_WEAK": "weakling-without-digit",
    "S_AUTH_CODE": "Xy98-Quince",
    "S_PRIVATE": "c2VjcmV0cw",
}
PASSWORD, WEAK, AUTH_CODE, PRIVATE = map(of_env, SECRETS)
URL = "https://hooks.example.com/both"
PASSING = {"computed_at", "time", "last_used_at", "checked_at", "uptime_seconds", "latency_ms", "request_id"}
CHECKED = {"check_mode": True, "diff": True}


def first_example(module: str) -> dict[str, Any]:
    """The options of a module's first example that names the module."""
    tasks = yaml.safe_load(spec_of(module).EXAMPLES)
    found: dict[str, Any] = next(
        task[f"hosting.cloud.{module}"] for task in tasks if f"hosting.cloud.{module}" in task
    )
    return found


# What each module is asked: nothing of it changes the account, so that the second way meets what the first
# one met.
LISTED: dict[str, list[tuple[dict[str, Any], Task]]] = {
    "api_key_info": [({}, {}), ({"id": "x"}, {})],
    "api_key_revoke": [({"key_id": "1"}, CHECKED), ({}, {})],
    "balance_topup": [({"amount": "25.00", "gateway": "card", "balance_below": "5000"}, CHECKED)],
    "domain": [
        ({"name": "expensive.com", "max_charge": "1.00"}, {}),
        ({"name": "new.com", "auto_renew": True}, CHECKED),
        ({"name": "old.com", "nameservers": ["ns1.example.org", "ns2.example.org"]}, CHECKED),
        ({"name": "old.com"}, {}),
    ],
    "domain_availability_info": [({"name": "free.com"}, {})],
    "domain_info": [({}, {}), ({"name": "OLD.com"}, {})],
    "domain_renew": [
        ({"name": "old.com", "until": "2028-06-01"}, CHECKED),
        ({"name": "none.com", "until": "2028-06-01"}, {}),
    ],
    "domain_transfer": [
        ({"name": "moved.com", "auth_code": AUTH_CODE}, CHECKED),
        ({"name": "moved.dev", "auth_code": AUTH_CODE}, {}),
    ],
    "invoice_info": [({}, {}), ({"status": "paid"}, {}), ({"pdf": "x.pdf"}, {})],
    "invoice_pay": [({"id": "{{ invoice }}"}, CHECKED), ({"id": "999999"}, {})],
    "invoice_payment_link": [({"id": "{{ invoice }}"}, CHECKED), ({"id": "999999"}, {})],
    "os_image_info": [({"tariff_id": 1}, {})],
    "ptr": [
        ({"server_name": "old", "domain": "a.example.com"}, CHECKED),
        ({"server_name": "twin", "domain": "a.example.com"}, {}),
    ],
    "quote_info": [({"tariff_id": 1, "months": 3}, {}), ({"tariff_id": 999}, {})],
    "server": [
        (
            {"name": "new", "tariff_id": 1, "os": "debian-12", "password": PASSWORD, "max_charge": "500"},
            CHECKED,
        ),
        ({"name": "old", "notes": "other", "state": "stopped"}, CHECKED),
        ({"name": "old", "state": "absent"}, CHECKED),
        ({"name": "old", "state": "reinstalled", "erase": "old", "password": PASSWORD}, CHECKED),
        ({"name": "old", "state": "present"}, {}),
        ({"name": "incomplete", "password": PASSWORD}, {}),
        ({"name": "new", "tariff_id": 1, "os": "debian-12", "password": WEAK}, {}),
        ({"name": "twin", "notes": "which?"}, {}),
        ({"name": "new", "colour": "blue"}, {}),
        ({"name": "new", "state": "asleep"}, {}),
    ],
    "server_info": [
        ({}, {}),
        ({"name": "old", "live": True, "details": True}, {}),
        ({"id": "1", "name": "old"}, {}),
    ],
    "server_ip": [({"server_name": "old", "max_charge": "500"}, CHECKED), ({"server_name": "missing"}, {})],
    "server_ip_info": [({"server_name": "old", "quote": True}, {})],
    "server_password": [
        ({"name": "old", "password_file": "old.password"}, CHECKED),
        ({"name": "old", "password_file": "no/where"}, {}),
    ],
    "server_renew": [
        ({"name": "old", "until": "{{ soon }}"}, CHECKED),
        ({"name": "old", "until": "soon"}, {}),
    ],
    "ssh_key": [
        ({"name": "other", "public_key": OTHER_LINE}, CHECKED),
        ({"name": "renamed", "public_key": KEY_LINE}, CHECKED),
        ({"name": "laptop"}, {}),
        ({"name": "k", "public_key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PRIVATE}\n"}, {}),
    ],
    "tariff_info": [({}, {}), ({"id": 2}, {})],
    "transaction_info": [({}, {}), ({"since": "yesterday"}, {})],
    "webhook_delivery_info": [({"url": URL}, {})],
    "webhook_redeliver": [({"url": URL}, {})],
    "webhook_subscription": [
        ({"url": URL, "events": ["server.suspended"]}, CHECKED),
        ({"url": URL + "/new", "events": ["*"], "secret_file": "secret"}, CHECKED),
        ({"url": URL}, {}),
    ],
    "webhook_test": [({"url": URL}, CHECKED), ({"url": URL + "/missing"}, {})],
}


# What is not listed is asked as the first example of its documentation does, in check mode.
ASKED = {name: LISTED.get(name) or [(first_example(name), CHECKED)] for name in MODULES}


def tasks(way: str) -> list[Task]:
    return [
        {
            "name": f"{way} {module} {number}",
            f"hosting.cloud.{module}": options,
            "ignore_errors": True,
            **keywords,
        }
        for module, asked in ASKED.items()
        for number, (options, keywords) in enumerate(asked)
    ]


@pytest.fixture
def account(ansible: Ansible) -> dict[str, str]:
    """An account with one of everything, and what a play must know of it."""
    made = ansible.control("POST", "/invoices", {"type": "other", "amount": "3.00"})
    ansible.client.ssh_keys.create(name="laptop", public_key=KEY_LINE)
    ansible.client.domains.register(name="old.com", years=1, privacy=True)
    # of which nothing is told here, so that it stays as it is
    ansible.client.webhooks.create(url=URL, events=["balance.low"])
    for name in ("old", "twin", "twin"):
        ansible.client.servers.create(tariff_id=1, os="debian-12", name=name)
    key = ansible.control(
        "POST", "/keys", {"mode": "live", "rate_per_minute": 10_000, "rate_expensive_per_minute": 10_000}
    )["key"]
    soon = "{{ '%Y-%m-%d' | ansible.builtin.strftime(now(utc=true).timestamp() + 40 * 86400, utc=true) }}"
    return {"key": key, "invoice": str(made["id"]), "soon": soon}


def elsewhere(ansible: Ansible) -> dict[str, str]:
    return {"ANSIBLE_CONNECTION_PLUGINS": str(Path(__file__).parent / "connection")}


def plain(value: Any) -> Any:
    """Without what differs from one moment to the next, and without what Ansible keeps for itself."""
    if isinstance(value, dict):
        planned = {"created_at"} if value.get("id", "") is None else set()  # made when the task looked
        return {
            name: plain(item)
            for name, item in value.items()
            if name not in PASSING | planned and not name.startswith("_ansible")
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def shown(result: dict[str, Any]) -> Any:
    found = {name: value for name, value in plain(result).items() if name != "invocation"}
    request = (result.get("failure") or {}).get("request_id")
    return {**found, "msg": found["msg"].replace(request, "…")} if request else found


def differences(name: str, fast: dict[str, Any], by_module: dict[str, Any]) -> list[str]:
    one, other = shown(fast), shown(by_module)
    if one.get("msg") != other.get("msg"):  # Ansible refuses the arguments of a module, without a next step
        one["msg"] = one["msg"].removesuffix(". Next: correct the options of this task")
        other["msg"] = other["msg"].removesuffix(".")
    return [
        f"{name}: {part} is {one.get(part)!r:.200}, and by the module {other.get(part)!r:.200}"
        for part in sorted({*one, *other})
        if one.get(part) != other.get(part)
    ]


def test_both_ways_have_the_same_results_and_show_no_secret(
    ansible: Ansible, account: dict[str, str]
) -> None:
    before = ansible.writes()
    defaults = {"group/hosting.cloud.all": {"api_key": of_env("S_KEY")}}
    variables = {name: account[name] for name in ("invoice", "soon")}
    environ = {**elsewhere(ansible), "S_KEY": account["key"], "HOSTING_API_KEY": "", **SECRETS}
    ways: dict[str, dict[str, dict[str, Any]]] = {}
    printed = ""
    for way, connection in (("fast", {}), ("module", {"ansible_connection": "elsewhere"})):
        block = {"name": way, "module_defaults": defaults, "block": tasks(way)}
        played = ansible.finish(
            ansible.start(block, arguments=("-vvvv",), environ=environ, variables={**variables, **connection})
        )
        ways[way] = {line["task"].removeprefix(f"{way} "): line for line in played.lines}
        printed += played.output + ansible.record.read_text()
        assert {line["outcome"] for line in played.lines} == {"ok", "failed"}
        assert ("EXEC /bin/sh" in played.output) == (way == "module")
    assert (
        list(ways["fast"])
        == list(ways["module"])
        == [task["name"].removeprefix("fast ") for task in tasks("fast")]
    )
    different = [
        line
        for name, fast in ways["fast"].items()
        for line in differences(name, fast["result"], ways["module"][name]["result"])
    ]
    assert not different, "\n".join(different)
    assert ansible.writes() == before
    secrets = {"S_KEY": account["key"], **SECRETS}
    assert [name for name, secret in secrets.items() if secret in printed] == []
    assert "Traceback" not in printed


@pytest.mark.daily
def test_both_ways_use_the_environment_of_a_task(ansible: Ansible, account: dict[str, str]) -> None:
    """The play's environment, a single module's defaults and the option itself, from the weakest to the
    strongest."""
    ansible.environ.pop("HOSTING_API_KEY")
    said = {"HOSTING_API_KEY": account["key"], "HOSTING_MAX_CHARGE": "0.01"}
    asked: list[Task] = [
        {"name": "by environment", "hosting.cloud.me_info": {}, "environment": said},
        {"name": "by nothing", "hosting.cloud.me_info": {}, "ignore_errors": True},
        {
            "name": "by option",
            "hosting.cloud.me_info": {"api_key": ansible.emulator.test_key},
            "environment": said,
            "module_defaults": {
                "hosting.cloud.me_info": {"api_key": "vk_live_neverneverneverneverneverneverneverne"}
            },
        },
        {
            "name": "limited",
            "hosting.cloud.server": {
                "name": "new",
                "tariff_id": 1,
                "os": "debian-12",
                "password": "Zebra-Kettle-4711",
            },
            "environment": said,
            "ignore_errors": True,
        },
    ]
    for way, variables in (("fast", {}), ("module", {"ansible_connection": "elsewhere"})):
        played = ansible.finish(ansible.start(*asked, environ=elsewhere(ansible), variables=variables))
        assert played["by environment"]["me"]["key"]["mode"] == "live", way
        assert "HOSTING_API_KEY" in played["by nothing"]["msg"], way
        assert played["by option"]["me"]["key"]["mode"] == "test", way
        assert "max_charge 0.01" in played["limited"]["msg"], way


def test_the_items_of_a_loop_share_a_client_in_the_controller(
    ansible: Ansible, account: dict[str, str]
) -> None:
    """The account is asked for once per client. Each module is a process."""

    def asked(played: Played, since: int) -> int:
        assert played["loop"]["results"]
        return sum(request["path"] == "/me" for request in ansible.control("GET", f"/requests?since={since}"))

    def loop(run: str) -> Task:
        return {
            "name": "loop",
            "hosting.cloud.server": {"name": "{{ item }}", "tariff_id": 1, "os": "debian-12"},
            "loop": [f"{run}-{number}" for number in (1, 2, 3)],
        }

    counts = []
    for run, variables in (("here", {}), ("there", {"ansible_connection": "elsewhere"})):
        since = ansible.control("GET", "/requests?since=0")[-1]["seq"]
        counts.append(
            asked(
                ansible.finish(ansible.start(loop(run), environ=elsewhere(ansible), variables=variables)),
                since,
            )
        )
    assert counts == [1, 4]  # there, each module asks, and the controller before them
    assert len(ansible.server_charges()) == len(ansible.living)
