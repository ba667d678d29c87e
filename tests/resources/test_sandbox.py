"""With a test key: what is simulated is made once, is no drift while it cannot be read, and is gone when
its day is over.
"""

from typing import Any

import pytest

from pulumi_hosting.client.exceptions import TransportError
from pulumi_hosting.planning import apply
from pulumi_hosting.planning.check import check
from pulumi_hosting.planning.diff import diff
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.resources.ssh_key import SSH_KEY
from pulumi_hosting.session.errors import ResourceError
from tests.resources.conftest import GOOD, ResourceHarness

DAY = 24 * 3600
DESIRED: dict[str, Any] = {**GOOD, "notes": "mine", "auto_renew": False}
KEY_LINE = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKc4kOLbLqVvPsC6XnV2CGzW0fBsq1DQzR1H4VqT5gkE me@host"


@pytest.mark.parametrize("echo", ["none", "server"])
def test_what_was_written_to_a_simulated_server_is_no_drift(harness: ResourceHarness, echo: str) -> None:
    harness.account.variant(sandbox_echo=echo)
    made = harness.order(DESIRED, key=harness.account.test_key)
    context = harness.context(key=harness.account.test_key)
    seen = apply.read(context, SERVER, made)
    assert not diff(SERVER, seen.values(), DESIRED)
    changed = {**DESIRED, "name": "web-2", "notes": "other"}
    after = SERVER.update(context, seen, check(SERVER, changed).inputs, frozenset({"name", "notes"}))
    assert not diff(SERVER, apply.read(context, SERVER, after).values(), changed)
    assert harness.charges == 0


@pytest.mark.parametrize("echo", ["none", "server"])
def test_a_simulated_server_whose_state_was_lost_is_made_again_unless_its_tag_shows(
    harness: ResourceHarness, echo: str
) -> None:
    """The keys of a test key are random: a second one costs nothing."""
    harness.account.variant(sandbox_echo=echo)
    first = harness.order(DESIRED, key=harness.account.test_key)
    again = harness.order(DESIRED, key=harness.account.test_key)
    assert (again.id == first.id) is (echo == "server")
    assert harness.charges == 0


def test_a_simulated_server_is_made_any_number_of_times(harness: ResourceHarness) -> None:
    key = harness.roomy_key("test")
    made = set()
    for _ in range(20):
        state = harness.order(key=key)
        made.add(state.id)
        assert harness.transports[-1].sent.count("POST /v1/servers") == 1
        apply.delete(harness.context(key=key), SERVER, state)
    assert len(made) == 20
    assert harness.charges == 0


def test_a_simulated_server_is_gone_after_its_day_though_its_key_is_remembered(
    harness: ResourceHarness,
) -> None:
    first = harness.order(key=harness.account.test_key)
    harness.control("POST", "/clock", {"advance": DAY + 1})
    assert apply.read(harness.context(key=harness.account.test_key), SERVER, first) is None
    assert harness.order(key=harness.account.test_key).id != first.id


def test_a_real_server_read_with_a_test_key_shows_its_drift(harness: ResourceHarness) -> None:
    made = harness.order(DESIRED)
    harness.control("PATCH", f"/servers/{made.id}", {"notes": "by hand"})
    seen = apply.read(harness.context(key=harness.account.test_key), SERVER, made)
    assert diff(SERVER, seen.values(), DESIRED).fields == {"notes"}


def test_a_simulated_key_cannot_be_read_and_is_not_gone(harness: ResourceHarness) -> None:
    context = harness.context(key=harness.account.test_key)
    made = apply.create(context, SSH_KEY, check(SSH_KEY, {"name": "me", "public_key": KEY_LINE}).inputs)
    assert list(SSH_KEY.all(context)) == []
    assert apply.read(context, SSH_KEY, made) == made
    assert made.mode == "test"
    apply.delete(context, SSH_KEY, made)
    with pytest.raises(
        ResourceError, match="only simulated, with a test key, and a live key must not touch it"
    ):
        apply.read(harness.context(), SSH_KEY, made)


@pytest.mark.parametrize("reading", ["conflict", "second"])
@pytest.mark.parametrize("action", [{"drop": "after"}, {"drop": "before"}, {"truncate": 5}])
def test_a_key_whose_answer_was_lost_is_not_doubled(
    harness: ResourceHarness, reading: str, action: dict[str, Any]
) -> None:
    harness.account.variant(duplicate_ssh_key=reading)
    inputs = check(SSH_KEY, {"name": "me", "public_key": KEY_LINE}).inputs
    harness.fault(action, path="^/ssh-keys$")
    try:
        made = apply.create(harness.context(), SSH_KEY, inputs)
    except TransportError:
        made = None  # never processed: said, and nothing was added
    again = apply.create(harness.context(), SSH_KEY, inputs)
    assert made is None or made.id == again.id
    assert len(harness.control("GET", "/objects")["ssh_keys"]) == 1
