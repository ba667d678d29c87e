"""What is no id, and no name of a server in place of one, is refused in one line by every module that takes
one."""

from pathlib import Path
from typing import Any

import pytest

from tests.ansible.in_process import Play
from tests.ansible.test_specs import MODULES, module
from tests.support.account import Account

IDS = ["", "abc", "order:abc", "٢٠٠٠١", "²", "0", "-1", "20001.0", "1/2/3"]
# What the modules need beside the id.
MORE: dict[str, dict[str, Any]] = {
    "domain_renew": {"until": "2035-01-01"},
    "server_password": {"password_file": str(Path(__file__).with_name("never-written"))},
    "server_renew": {"until": "2035-01-01"},
}
STATES = ("present", "absent")
OF_SERVERS = ("ptr", "server_ip")
CASES = [
    (name, option, state)
    for name in MODULES
    for option in ("id", "server_id", "key_id", "delivery_id")
    if option in module(name).MODULE.argument_spec
    and (name, option) not in (("webhook_redeliver", "delivery_id"), ("tariff_info", "id"))
    for state in (STATES if "state" in module(name).MODULE.argument_spec else (None,))
]


@pytest.fixture(scope="module")
def account() -> Account:
    return Account()


@pytest.mark.parametrize("check_mode", [False, True], ids=["run", "check"])
@pytest.mark.parametrize(("name", "option", "state"), CASES)
def test_what_is_no_id_is_one_line(
    account: Account, name: str, option: str, state: str | None, check_mode: bool
) -> None:
    options = {**MORE.get(name, {}), **({"state": state} if state else {})}
    if name == "ptr" and state == "present":
        options["domain"] = "a.example.com"
    if option == "server_id" and state == "absent":
        options["address"] = "198.18.1.2"
    # In check mode an empty text stands for the id of an object that is not there yet.
    for id in IDS[check_mode and name in OF_SERVERS :]:
        result = Play(account, check_mode=check_mode)(name, **options, **{option: id})
        text = result["msg"]
        assert result["failed"], (id, result)
        # What may be a name is looked for: no server has it.
        is_name = option == "server_id" and f"no server named {id!r}" in text
        assert is_name or "id" in text, (id, text)
        assert is_name or result["failure"]["code"] in ("invalid_input", "refused"), (id, result)
        assert text.count("Next: ") == 1, (id, text)
        assert len(text.splitlines()) == 1
    assert account.requested("POST") == account.requested("DELETE") == []


@pytest.mark.parametrize("check_mode", [False, True], ids=["run", "check"])
@pytest.mark.parametrize(
    ("name", "options", "option"),
    [
        ("server_ip", {"server_id": "{id}", "address": "web-1"}, "address"),
        ("server_ip", {"server_id": "{id}", "address": "web-1", "state": "absent"}, "address"),
        ("domain_info", {"name": "a b.example"}, "name"),
        ("webhook_delivery_info", {"delivery_id": "web-1"}, "delivery_id"),
    ],
)
def test_what_is_no_address_domain_or_id_is_named_by_its_option(
    name: str, options: dict[str, Any], option: str, check_mode: bool
) -> None:
    account = Account()
    server = Play(account)("server", name="web-1", tariff_id=1, os="debian-12")["server"]
    play = Play(account, check_mode=check_mode)
    result = play(name, **{key: value.format(id=server["id"]) for key, value in options.items()})
    assert result["failure"]["code"] == "invalid_input", result
    assert [*result["failure"]["fields"]] == [option]
    assert result["msg"].count("Next: ") == 1
