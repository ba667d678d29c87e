"""What is left when something fails half-way, when two declarations meet, and when an engine asks what it
rarely asks.
"""

from collections.abc import Callable
from typing import Any

import pytest

from pulumi_hosting.api.values import fingerprint
from pulumi_hosting.client.exceptions import HostingError, InvalidInput
from pulumi_hosting.provider.conversion import UNKNOWN
from pulumi_hosting.provider.dynamic import ServerProvider
from pulumi_hosting.provider.failures import PartialFailure
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.session.errors import ResourceError
from tests.provider.processes import WEB, Start
from tests.support.account import Account
from tests.support.programs import PUBLIC_KEY


def test_a_reinstallation_is_remembered_though_the_power_fails_afterwards(
    processes: Start, account: Account
) -> None:
    first = processes()
    id, outputs, inputs = first.made("server", "web", {**WEB, "rebuild": "reinstall", "power": "stopped"})
    desired = {**inputs, "os": "ubuntu-24.04", "password": "Zyxwvut9"}
    account.control(
        "POST",
        "/faults",
        {"path": "/actions/power$", "action": {"status": 500, "code": "server_error"}, "times": 9},
    )
    with pytest.raises(PartialFailure) as stopped:
        first.of("server").update(id, outputs, desired)
    assert not stopped.value.refresh
    left = stopped.value.outputs
    assert (left["os"], left["rootPassword"], left["power"]) == ("ubuntu-24.04", "Zyxwvut9", "running")
    account.control("DELETE", "/faults")
    second = processes()
    assert second.of("server").diff(id, left, desired).properties.keys() == {"power"}
    second.of("server").update(id, left, desired)
    sent = [
        entry["path"] for entry in account.control("GET", "/requests") if entry["path"].endswith("/reinstall")
    ]
    assert len(sent) == 1


def test_a_secret_is_not_taken_for_rotated_when_the_rotation_failed(
    processes: Start, account: Account
) -> None:
    process = processes()
    id, outputs, inputs = process.made(
        "webhook_subscription", "hook", {"url": "https://hooks.example.com/x", "events": ["*"]}
    )
    account.control(
        "POST",
        "/faults",
        {"path": "/rotate-secret$", "action": {"status": 500, "code": "server_error"}, "times": 9},
    )
    desired = {**inputs, "rotation": "1", "description": "ops"}
    with pytest.raises(PartialFailure) as stopped:
        process.of("webhook_subscription").update(id, outputs, desired)
    left = stopped.value.outputs
    assert left["description"] == "ops"
    assert process.of("webhook_subscription").diff(id, left, desired).properties.keys() == {"rotation"}


@pytest.mark.parametrize("form", ["adapter", "dynamic"])
def test_what_was_ordered_and_not_set_says_that_it_exists_and_was_charged(
    processes: Start,
    account: Account,
    form: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account.control(
        "POST",
        "/faults",
        {
            "method": "PATCH",
            "path": "^/servers/",
            "action": {"status": 500, "code": "server_error"},
            "times": 9,
        },
    )
    process = processes()
    desired = {**WEB, "notes": "the shop", IDENTITY: "pulumi:t/dev/server/web"}
    if form == "adapter":
        with pytest.raises(PartialFailure) as stopped:
            process.of("server").create(desired)
        id, left, line = stopped.value.id, stopped.value.outputs, str(stopped.value)
    else:
        monkeypatch.setattr("pulumi_hosting.provider.provider_session.SESSION", process.session)
        made = ServerProvider().create(desired)
        id, left = made.id, made.outs or {}
        line = capsys.readouterr().out.strip().splitlines()[-1]
    assert (
        line.strip()
        .removeprefix("warning: ")
        .startswith(f"server {id} exists and was charged 5.00 EUR, but: ")
    )
    assert line.strip().endswith("Next: pulumi up, which sets the rest")
    assert line.count("Next:") == 1
    account.control("DELETE", "/faults")
    later = processes()
    assert later.of("server").diff(id, left, desired).properties.keys() == {"notes"}
    later.of("server").update(id, left, desired)
    assert [server["notes"].split(" [")[0] for server in account.living] == ["the shop"]
    assert len(account.ledger()) == 1


FAILED: dict[str, tuple[str, str]] = {
    "test key": ("made with a live key", ""),
    "revoked key": ("the API key is not valid", ""),
    "502": ("the panel, registrar or gateway failed", "upstream_error"),
}


@pytest.mark.parametrize(("reason", "fault"), FAILED.values(), ids=FAILED)
def test_a_failed_deletion_names_what_left_the_state(
    processes: Start, account: Account, reason: str, fault: str
) -> None:
    """Engines drop what goes with a server before they ask for the deletion of the server."""
    first = processes()
    web = first.create("server", "web", WEB)
    mail = first.create("server_ip", "mail", {"serverId": web.id})
    name = {"serverId": web.id, "address": mail.outputs["address"], "domain": "mail.example.com"}
    first.create("ptr", "name", name)
    before = account.objects("addresses")
    key = account.live_key
    if reason == FAILED["test key"][0]:
        key = account.test_key
    elif not fault:
        made = account.control("POST", "/keys", {"mode": "live"})
        account.control("DELETE", f"/keys/{made['id']}")
        key = made["key"]
    else:
        action = {"status": 502, "code": fault}
        account.control(
            "POST", "/faults", {"method": "DELETE", "path": "^/servers/", "action": action, "times": 9}
        )
    failing = processes(apiKey=key)
    with pytest.raises(HostingError, match=reason) as failed:
        failing.delete("server", web)
    assert "charged" not in str(failed.value)
    (line,) = [line for line in failing.lines if "left the state" in line]
    assert line.startswith(
        f"web: warning: server {web.id} was not deleted, and neither was what goes with it"
    )
    assert "Next: pulumi up finds it again and pays nothing" in line
    if reason == FAILED["revoked key"][0]:  # which addresses there are cannot be asked
        assert ": its addresses and PTR records. " in line
    else:
        assert f"address {mail.outputs['address']} (id {mail.id})" in line
        assert f"PTR record mail.example.com of {mail.outputs['address']}" in line
        assert f'adopt_id="{mail.outputs["address"]}"' in line
    assert account.objects("addresses") == before
    assert account.living_ids == [web.id]
    # the address is found again, and the next destroy takes it along
    account.control("DELETE", "/faults")
    paid = account.moved()
    later = processes()
    assert later.create("server_ip", "mail", {"serverId": web.id}).id == mail.id
    assert account.moved() == paid
    later.delete("server", web)
    assert account.living_ids == []
    assert account.moved() == 0


def test_a_failed_deletion_of_a_server_alone_has_nothing_to_name(processes: Start, account: Account) -> None:
    web = processes().create("server", "web", WEB)
    refused = processes(apiKey=account.test_key)
    with pytest.raises(ResourceError, match="made with a live key"):
        refused.delete("server", web)
    assert refused.lines == []
    assert account.living_ids == [web.id]


def test_what_is_to_be_replaced_is_not_adopted(processes: Start, account: Account) -> None:
    id, outputs, inputs = processes().made("server", "web", {**WEB, "password": "Abcdefg1"})
    process = processes()
    desired = {**inputs, "password": "Zyxwvut9", "rebuild": "replace", "adoptId": id}
    assert process.of("server").diff(id, outputs, desired).replaces == ("password",)
    with pytest.raises(ResourceError, match="the resource being replaced; nothing was changed"):
        process.of("server").create(desired)
    assert len(account.living) == 1


def test_two_declarations_do_not_adopt_the_same(processes: Start) -> None:
    id, _, _ = processes().made("server", "web", WEB)
    process = processes()
    process.made("server", "one", {**WEB, "adoptId": id})
    assert "another declaration has server" in process.refused("server", "two", {**WEB, "adoptId": id})


def test_an_id_of_another_kind_is_not_taken_for_owned(processes: Start, account: Account) -> None:
    process = processes()
    process.session.ownership.of_kind("ssh_key").add("pulumi:t/dev/ssh_key/me", "20001")
    id, _, _ = process.made("server", "web", WEB)
    assert id == "20001"
    assert len(account.living) == 1


def test_no_price_is_no_order_where_the_charge_is_limited(processes: Start, account: Account) -> None:
    account.control(
        "POST",
        "/faults",
        {"path": "^/catalog/quote$", "action": {"status": 400, "code": "invalid_request"}, "times": 9},
    )
    process = processes(maxCharge="100.00")
    with pytest.raises(
        InvalidInput,
        match=r"its price is not known, and maxCharge is 100\.00; it is not "
        r"ordered",
    ):
        process.made("server", "web", WEB)
    assert account.living == []


@pytest.mark.parametrize("limit", [0, 0.0, "0"])
def test_a_limit_of_nothing_is_a_limit(processes: Start, account: Account, limit: Any) -> None:
    process = processes(maxCharge=limit)
    _, failures = process.of("server").check({}, {**WEB, IDENTITY: "pulumi:t/dev/server/web"})
    assert "more than maxCharge 0" in failures[""]


@pytest.mark.parametrize("field", ["tariffId", "os", "billingCycle"])
def test_what_the_service_does_not_show_is_not_compared(processes: Start, field: str) -> None:
    process = processes()
    id, outputs, inputs = process.made("server", "web", {**WEB, "billingCycle": "monthly"})
    outputs.pop(field)
    assert not process.of("server").diff(id, outputs, inputs).changes


def test_unknown_values_pass_the_check(processes: Start, account: Account) -> None:
    process = processes(maxCharge="1.00")
    account.control("PATCH", "/tariffs/1", {"in_stock": False})
    for kind, desired in (
        ("server", {**WEB, "name": UNKNOWN, "tariffId": 2.0, "months": UNKNOWN}),
        ("server", {**WEB, "adoptId": UNKNOWN}),
        ("domain", {"name": "taken-1.com", "authCode": UNKNOWN}),
        ("server_ip", {"serverId": UNKNOWN}),
        ("ptr", {"serverId": UNKNOWN, "address": UNKNOWN, "domain": UNKNOWN}),
        ("webhook_subscription", {"url": UNKNOWN, "events": UNKNOWN, "active": UNKNOWN}),
        ("ssh_key", {"name": "me", "publicKey": UNKNOWN}),
    ):
        inputs, failures = process.of(kind).check({}, {**desired, IDENTITY: f"pulumi:t/dev/{kind}/it"})
        assert failures == {}, kind
        assert process.of(kind).preview_create(inputs)["mode"] == "live"


OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1J0oPqkq3n9mYh0b8Jx6m0c6K0s8mF0v7b0q3Yw2aB"


@pytest.mark.parametrize("rebuild", ["replace", "reinstall", "forbid"])
def test_an_ssh_key_that_was_made_again_is_no_change_of_its_servers(
    processes: Start, account: Account, rebuild: str
) -> None:
    first = processes()
    key, _, _ = first.made("ssh_key", "me", {"name": "me", "publicKey": PUBLIC_KEY})
    id, outputs, inputs = first.made("server", "web", {**WEB, "sshKeyIds": [key], "rebuild": rebuild})
    assert outputs["sshKeyFingerprints"] == [fingerprint(PUBLIC_KEY)]
    first.session.client.ssh_keys.delete(int(key))
    later = processes()
    again = str(later.session.client.ssh_keys.create(name="me again", public_key=PUBLIC_KEY).id)
    other = str(later.session.client.ssh_keys.create(name="other", public_key=OTHER_KEY).id)
    assert again != key
    desired, failures = later.of("server").check(inputs, {**inputs, "sshKeyIds": [again]})
    assert failures == {}
    assert not later.of("server").diff(id, outputs, desired).changes
    kept = later.of("server").update(id, outputs, desired)
    assert kept["sshKeyFingerprints"] == [fingerprint(PUBLIC_KEY)]
    assert not [
        entry for entry in account.control("GET", "/requests") if entry["path"].endswith("/reinstall")
    ]
    changed = {**desired, "sshKeyIds": [again, other]}
    assert later.of("server").diff(id, outputs, changed).changes
    if rebuild == "reinstall":
        done = later.of("server").update(id, outputs, changed)
        assert sorted(done["sshKeyFingerprints"]) == sorted([fingerprint(PUBLIC_KEY), fingerprint(OTHER_KEY)])
        assert not later.of("server").diff(id, done, changed).changes
    without = {name: value for name, value in changed.items() if name != "rebuild"}
    assert not later.of("server").diff(id, outputs, without).changes
    assert any(
        "ssh_key_ids has changed and is installed only when a server is made" in line for line in later.lines
    )
    assert len(account.living) == 1


def test_drift_of_what_must_not_be_rebuilt_is_a_difference_and_no_failure(
    processes: Start, account: Account
) -> None:
    process = processes()
    id, outputs, inputs = process.made("server", "web", {**WEB, "rebuild": "forbid"})
    account.control("PATCH", f"/servers/{id}", {"os": "ubuntu-24.04"})
    found = processes().of("server").read(id, outputs)
    assert found is not None
    assert process.of("server").diff(id, found[1], inputs).properties.keys() == {"os"}
    with pytest.raises(ResourceError, match="rebuild is 'forbid'; nothing was changed"):
        process.of("server").update(id, found[1], inputs)
    _, failures = process.of("server").check(inputs, {**inputs, "os": "ubuntu-24.04"})
    assert "rebuild is 'forbid'" in failures["os"]


@pytest.mark.emulator(ip_delay=600)
def test_a_purchase_under_way_goes_with_its_server(processes: Start, account: Account) -> None:
    process = processes()
    server, _, _ = process.made("server", "web", WEB)
    desired = {"serverId": server, "waitTimeout": 0.01}
    with pytest.raises(PartialFailure) as waiting:
        process.made("server_ip", "spare", desired)
    assert waiting.value.refresh
    pending = waiting.value.id
    assert pending.startswith("pending:")
    account.control("DELETE", f"/servers/{server}")
    later = processes()
    assert later.of("server_ip", native=True).read(pending, waiting.value.outputs) is None
    later.of("server_ip").delete(pending, waiting.value.outputs)


def test_the_last_server_in_stock_is_not_refused_to_whoever_ordered_it(
    processes: Start, account: Account
) -> None:
    processes().made("server", "web", WEB)  # and killed before it was remembered
    account.control("PATCH", "/tariffs/1", {"in_stock": False})
    processes().made("server", "web", WEB)
    assert len(account.living) == 1
    _, failures = (
        processes().of("server").check({}, {**WEB, "name": "other", IDENTITY: "pulumi:t/dev/server/other"})
    )
    assert failures.keys() == {"tariff_id"}


def test_another_address_on_demand_is_bought_once_too(processes: Start, account: Account) -> None:
    server, _, _ = processes().made("server", "web", WEB)
    for _ in range(2):  # the second time nothing is remembered, as after a kill
        processes().made("server_ip", "spare", {"serverId": server, "orderAttempt": 1.0})
    assert (
        len([address for address in account.control("GET", "/objects")["addresses"] if address["bought"]])
        == 1
    )


def test_an_answer_that_shows_a_password_needs_no_second_look(processes: Start, account: Account) -> None:
    account.control(
        "POST",
        "/faults",
        {
            "method": "GET",
            "path": "^/servers/[0-9]+$",
            "action": {"status": 500, "code": "server_error"},
            "times": 9,
        },
    )
    _, outputs, _ = processes().made("server", "web", WEB)
    assert outputs["rootPassword"]


@pytest.mark.emulator(provisioning_delay=600)
def test_reading_writes_nothing(processes: Start, account: Account) -> None:
    account.control(
        "POST", "/faults", {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}
    )
    process = processes()
    inputs, _ = process.of("server").check(
        {}, {**WEB, "notes": "one", "waitTimeout": 0.01, IDENTITY: "pulumi:t/dev/server/web"}
    )
    with pytest.raises(PartialFailure) as waiting:
        process.of("server").create(inputs)
    account.control("POST", "/clock", {"advance": 3600})
    before = len(account.control("GET", "/requests"))
    found = processes().of("server", native=True).read(waiting.value.id, waiting.value.outputs, inputs)
    assert found is not None
    assert found[0].isdigit()
    assert {entry["method"] for entry in account.control("GET", "/requests")[before:]} == {"GET"}
    later = processes()
    assert later.of("server").diff(found[0], found[1], inputs).properties.keys() == {"notes"}


@pytest.mark.parametrize("kind", ["server", "domain", "ssh_key", "webhook_subscription"])
@pytest.mark.parametrize("place", ["/v2", ""])
def test_not_found_at_a_wrong_address_deletes_nothing(
    processes: Start, account: Account, kind: str, place: str
) -> None:
    desired = {
        "server": WEB,
        "domain": {"name": "example.com", "autoRenew": True},
        "ssh_key": {"name": "me", "publicKey": PUBLIC_KEY},
        "webhook_subscription": {"url": "https://hooks.example.com/x", "events": ["*"]},
    }[kind]
    id, outputs, inputs = processes().made(kind, "it", desired)
    before = account.control("GET", "/objects")
    astray = processes(baseUrl=account.base_url.removesuffix("/v1") + place)
    with pytest.raises(HostingError):
        astray.of(kind).read(id, outputs, inputs)
    with pytest.raises(HostingError):
        astray.of(kind).delete(id, outputs)
    assert account.control("GET", "/objects") == before


def test_not_found_on_another_account_deletes_nothing(processes: Start, account: Account) -> None:
    id, outputs, inputs = processes().made("server", "web", WEB)
    other = processes(apiKey=account.control("POST", "/accounts", {})["live_key"])
    steps: list[Callable[[], Any]] = [
        lambda: other.of("server").read(id, outputs, inputs),
        lambda: other.of("server").update(id, outputs, {**inputs, "notes": "x"}),
        lambda: other.of("server").delete(id, outputs),
    ]
    for step in steps:
        with pytest.raises(
            ResourceError,
            match=r"is on account \d+, and this is a key of account \d+; "
            r"nothing was done",
        ):
            step()
    assert not any("is gone" in line for line in other.lines), other.lines
    assert len(account.living) == 1


def test_what_is_found_again_is_not_counted_as_a_charge(processes: Start) -> None:
    processes().made("server", "web", WEB)
    processes().made("domain", "site", {"name": "example.com"})
    again = processes(maxCharge="0")
    again.made("server", "web", WEB)
    again.made("domain", "site", {"name": "example.com"})


def test_a_failing_step_is_reported_in_one_line(processes: Start, account: Account) -> None:
    process = processes()
    account.control(
        "POST",
        "/faults",
        {"method": "POST", "path": "^/servers$", "action": {"status": 403, "code": "account_suspended"}},
    )
    with pytest.raises(HostingError) as refused:
        process.made("server", "web", WEB)
    assert "\n" not in str(refused.value)


def test_what_a_killed_run_ordered_is_announced_though_other_inputs_come_later(
    processes: Start, account: Account
) -> None:
    id, _, _ = processes().made("server", "web", WEB)  # and killed before it was remembered
    again = processes(maxCharge="0")
    desired = {**WEB, "sshKeyIds": [UNKNOWN], "promoCode": UNKNOWN, IDENTITY: "pulumi:t/dev/server/web"}
    inputs, failures = again.of("server").check({}, desired)
    assert failures == {}
    assert again.lines == [
        (
            f"web: takes over server {id}, ordered 0 min ago, 5.00 EUR, invoice 40001 (it carries this "
            "resource's ownership tag)"
        )
    ]
    assert again.of("server").preview_create(inputs)["charged"] == "0.00"
    taken, outputs, _ = again.made("server", "web", WEB)
    assert len([line for line in again.lines if "takes over" in line]) == 1, again.lines
    assert taken == id
    with pytest.raises(ResourceError, match=r"a later run took it over, .*; nothing was deleted"):
        processes().of("server").delete(
            id, {**outputs, "ownershipTag": outputs["ownershipTag"].replace(".1]", "]")}
        )
    assert len(account.living) == 1
    processes().of("server").delete(id, outputs)
    assert account.living == []


def test_an_older_one_stops_the_preview_with_the_edit_that_takes_it_over(
    processes: Start, account: Account
) -> None:
    id, _, _ = processes().made("server", "web", WEB)
    account.control("POST", "/clock", {"advance": 8 * 86400})
    _, failures = processes().of("server").check({}, {**WEB, IDENTITY: "pulumi:t/dev/server/web"})
    assert "ordered 8 days ago: it is older than seven days, and another state may have it" in failures[""]
    assert f"nothing was ordered. Next: set adopt_id={id} to take it over" in failures[""]
    taken, _, _ = processes().made("server", "web", {**WEB, "adoptId": id})
    assert taken == id
    assert len(account.living) == 1


def test_a_preview_warns_of_a_server_that_will_end(processes: Start, account: Account) -> None:
    id, outputs, inputs = processes().made("server", "web", {**WEB, "autoRenew": False})
    account.control("POST", "/clock", {"advance": 25 * 86400})
    later = processes()
    assert not later.of("server").diff(id, outputs, inputs).changes
    said, covers = later.lines
    assert "the balance covers everything that renews itself" in covers
    assert "is paid until" in said
    assert "does not renew itself. Next: set auto_renew, or pulumi-hosting action server-renew" in said
    account.control("PATCH", f"/servers/{id}", {"status": "terminated"})
    gone = processes()
    gone.of("server").diff(id, outputs, inputs)
    assert f"server {id} (web) is gone from the account (last due" in gone.lines[-1]
