"""What a partial failure shows; what the dynamic provider says of an order that is paid and in no state."""

from decimal import Decimal

import pytest

from pulumi_hosting.client.exceptions import ApiError
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.planning.budget import Budget
from pulumi_hosting.provider.failures import PartialFailure, paid_and_not_recorded
from pulumi_hosting.provider.names import IDENTITY
from pulumi_hosting.session.errors import OrderFailed, WaitTimeout
from tests.provider.processes import WEB, Start
from tests.support.account import Account


def told(cause: Exception) -> str:
    failure = PartialFailure("order:7", {}, [str(cause)], refresh=True)
    failure.__cause__ = cause
    return str(paid_and_not_recorded(failure, "server"))


def test_a_partial_failure_shows_no_secret_of_its_outputs() -> None:
    held = {"rootPassword": "hunter2-hunter2"}
    failure = PartialFailure("20001", held, ["not set yet"], refresh=False, inputs=held)
    assert "hunter2" not in f"{failure!r} {failure} {failure.args}"
    assert failure.outputs == failure.inputs == held


def test_a_wait_that_took_too_long() -> None:
    assert told(WaitTimeout("order 7 is not delivered yet. Next: run again", "order:7")) == (
        "order 7 is not delivered yet; order 7 is paid and in no state. Next: pulumi up, which waits for it; "
        "run it before destroy"
    )


def test_a_key_that_was_refused_meanwhile_comes_first() -> None:
    error = ApiError(status=401, code="key_expired", message="", operation="get_order")
    assert told(error) == (
        "the API key has expired; order 7 is paid and in no state. Next: create a new key in the "
        "control panel, then pulumi up, which waits for it; run it before destroy"
    )


def test_an_order_that_has_ended_is_paid_for_no_more() -> None:
    assert told(OrderFailed("order 7 was cancelled and refunded. Next: run again")) == (
        "order 7 was cancelled and refunded. Next: run again"
    )


def test_what_cannot_be_booked_is_recorded_all_the_same(
    processes: Start, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full after the order: the server is in the state, and the next run orders nothing."""

    def full(self: Budget, identity: str, amount: Decimal) -> None:
        raise LocalFilesError("the private directory cannot be written")

    monkeypatch.setattr(Budget, "charged", full)
    with pytest.raises(PartialFailure, match="the private directory cannot be written") as stopped:
        processes().of("server").create({**WEB, IDENTITY: "pulumi:t/dev/server/web"})
    monkeypatch.undo()
    (server,) = account.living
    assert stopped.value.id == str(server["id"])
    assert not processes().of("server").diff(stopped.value.id, stopped.value.outputs, WEB).changes
    assert len(account.ledger()) == 1
