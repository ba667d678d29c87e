"""Password, restart and reinstallation of a server."""

from typing import Any

import pytest

from pulumi_hosting.actions import Failed
from pulumi_hosting.client.exceptions import InvalidInput, ServiceState
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import ResourceError
from tests.resources.actions import PASSWORD, do, one, sent, server
from tests.resources.conftest import ResourceHarness


def test_a_password_is_reset_and_shown_to_its_owner_alone(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    predicted = do(any_dialect, "server_password", {"name": "web-1"}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_password", {"name": "web-1"})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after == {"mode": "live", "id": id, "name": "web-1"}
    assert predicted.result.password is None
    secret = result.result.password.reveal()
    assert len(secret) >= 8
    assert secret not in repr(result) + str(result.result) + str(any_dialect.messages)
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/reset-password"]


def test_a_password_whose_answer_is_lost_is_not_asked_for_again(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"drop": "after"}, path="reset-password$", times=3)
    with pytest.raises(
        Failed,
        match=r"whether the root password of server .* was changed is not "
        r"known",
    ) as caught:
        do(harness, "server_password", {"id": id})
    assert "Next: run again" in str(caught.value)
    assert len(sent(harness)) == 1


def test_the_sixth_reset_in_five_minutes_says_so(harness: ResourceHarness) -> None:
    id = server(harness)
    for _ in range(5):
        do(harness, "server_password", {"id": id})
    with pytest.raises(
        Failed,
        match=r"at most 5 password resets in 5 minutes are made for one "
        r"server",
    ) as caught:
        do(harness, "server_password", {"id": id})
    assert (caught.value.status, caught.value.code) == (429, "rate_limited")
    assert caught.value.request_id
    harness.control("POST", "/clock", {"advance": 301})
    assert do(harness, "server_password", {"id": id}).changed


# --- server_restart, server_reinstall ----------------------------------------------------------------------


def test_a_restart_is_sent_once_each_time(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    predicted = do(any_dialect, "server_restart", {"id": id}, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_restart", {"id": id})
    assert predicted.changed
    assert result.changed
    assert predicted.after == result.after
    assert result.result.power == "running"
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/power"]
    assert do(any_dialect, "server_restart", {"id": id}).changed


def test_a_stopped_server_is_started_by_it(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"status": "stopped", "power": "stopped"})
    predicted, result = (
        do(harness, "server_restart", {"id": id}, dry_run=dry_run) for dry_run in (True, False)
    )
    assert one(result.before)["power"] == "stopped"
    assert result.result.power == predicted.result.power == "running"


def test_a_restart_waits_for_what_runs_already(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.context().client.servers.reinstall(int(id), os="debian-12")
    assert do(harness, "server_restart", {"id": id}).changed
    assert any("another operation is running" in line for line in harness.messages)


def test_a_suspended_server_is_neither_restarted_nor_reinstalled(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.control("PATCH", f"/servers/{id}", {"status": "suspended"})
    for kind, more in (("server_restart", {}), ("server_reinstall", {"erase": id})):
        for dry_run in (True, False):
            with pytest.raises(ResourceError, match=r"is suspended and cannot be re.* nothing was sent"):
                do(harness, kind, {"id": id, **more}, dry_run=dry_run)


def test_a_restart_that_the_service_refuses_is_its_refusal(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"status": 409, "code": "service_state"}, path="power$")
    with pytest.raises(ServiceState):
        do(harness, "server_restart", {"id": id})


@pytest.mark.parametrize(
    "action", [{"drop": "after"}, {"truncate": 10}, {"status": 503, "code": "temporarily_unavailable"}]
)
def test_a_restart_whose_answer_is_lost_is_not_repeated(
    harness: ResourceHarness, action: dict[str, Any]
) -> None:
    id = server(harness)
    harness.fault(action, path="power$")
    with pytest.raises(Failed, match=r"whether server .* was restarted is not known; nothing was repeated"):
        do(harness, "server_restart", {"id": id})
    assert len(sent(harness)) == 1


def test_a_disk_is_erased_only_for_who_names_the_server_twice(harness: ResourceHarness) -> None:
    id = server(harness)
    for erase in ("web-2", "yes", "true", f"{id}0"):
        for dry_run in (True, False):
            with pytest.raises(
                InvalidInput,
                match=r"to say that this server's disk is to be erased; nothing "
                r"was sent",
            ) as caught:
                do(harness, "server_reinstall", {"id": id, "erase": erase}, dry_run=dry_run)
            assert set(caught.value.fields) == {"erase"}
            assert sent(harness) == []


def test_a_reinstallation_keeps_its_passwords_to_itself(any_dialect: ResourceHarness) -> None:
    id = server(any_dialect)
    raw = {"name": "web-1", "erase": id, "os": "ubuntu-24.04"}
    predicted = do(any_dialect, "server_reinstall", raw, dry_run=True)
    assert sent(any_dialect) == []
    result = do(any_dialect, "server_reinstall", raw)
    assert predicted.changed
    assert result.changed
    assert one(result.after)["os"] == one(predicted.after)["os"] == "ubuntu-24.04"
    assert "erased" in (predicted.note or "")
    generated = result.result.root_password.reveal()
    given = do(any_dialect, "server_reinstall", {**raw, "password": PASSWORD})
    assert given.result.root_password.reveal() == PASSWORD
    for secret in (generated, PASSWORD):
        assert secret not in repr(result) + repr(given) + str(any_dialect.messages)
    assert sent(any_dialect) == [f"POST /v1/servers/{id}/actions/reinstall"]


def test_a_new_password_is_in_no_local_variable_as_text(
    harness: ResourceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ResourceError("cut")

    id = server(harness)
    monkeypatch.setattr(SERVER, "until", fail)
    with pytest.raises(ResourceError, match="cut") as caught:
        do(harness, "server_reinstall", {"id": id, "erase": id, "os": "ubuntu-24.04"})
    (frame,) = (entry for entry in caught.traceback if entry.name == "reinstall")
    password = frame.locals["password"].reveal()
    assert [name for name, value in frame.locals.items() if password in repr(value)] == []


def test_the_image_is_the_present_one_or_one_of_the_catalog(harness: ResourceHarness) -> None:
    id = server(harness)
    assert do(harness, "server_reinstall", {"id": id, "erase": id}).result.os == "debian-12"
    with pytest.raises(InvalidInput) as caught:
        do(harness, "server_reinstall", {"id": id, "erase": id, "os": "templeos"}, dry_run=True)
    assert set(caught.value.fields) == {"os"}
    excluded = next(
        tariff
        for tariff in harness.context().client.catalog.tariffs()
        if tariff.excluded_os and tariff.in_stock
    )
    other = server(harness, tariff_id=excluded.id, name="web-2")
    with pytest.raises(InvalidInput, match=r"is not offered with tariff"):
        do(
            harness,
            "server_reinstall",
            {"id": other, "erase": other, "os": (excluded.excluded_os or [""])[0]},
        )


def test_a_reinstallation_whose_answer_is_lost_is_not_repeated(harness: ResourceHarness) -> None:
    id = server(harness)
    harness.fault({"drop": "after"}, path="reinstall$")
    with pytest.raises(ResourceError, match=r"whether server .* was reinstalled is not known"):
        do(harness, "server_reinstall", {"id": id, "erase": id, "password": PASSWORD})
    assert len(sent(harness)) == 1
