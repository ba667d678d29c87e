"""What the dynamic provider says of an order that is paid and in no state."""

from pulumi_hosting.client.exceptions import ApiError
from pulumi_hosting.provider.partial_failure import PartialFailure, paid_and_not_recorded
from pulumi_hosting.session.errors import OrderFailed, WaitTimeout


def told(cause: Exception) -> str:
    failure = PartialFailure("order:7", {}, [str(cause)], refresh=True)
    failure.__cause__ = cause
    return str(paid_and_not_recorded(failure, "server"))


def test_a_wait_that_took_too_long() -> None:
    assert told(WaitTimeout("order 7 is not delivered yet. Next: run again", "order:7")) == (
        "order 7 is not delivered yet; order 7 is paid and in no state. Next: pulumi up, which waits for it; "
        "run it before destroy"
    )


def test_a_key_that_was_refused_meanwhile_comes_first() -> None:
    error = ApiError(status=401, code="key_expired", message="", operation="get_order")
    assert told(error) == (
        "get_order: the API key has expired; order 7 is paid and in no state. Next: create a new key in the "
        "control panel, then pulumi up, which waits for it; run it before destroy"
    )


def test_an_order_that_has_ended_is_paid_for_no_more() -> None:
    assert told(OrderFailed("order 7 was cancelled and refunded. Next: run again")) == (
        "order 7 was cancelled and refunded. Next: run again"
    )
