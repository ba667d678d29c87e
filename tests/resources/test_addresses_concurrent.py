"""Several runs that buy addresses at the same time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import httpx
import pytest

from pulumi_hosting.client import private_directory, shared_store
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.planning import apply
from pulumi_hosting.resources.server_ip import SERVER_IP, ServerIpState
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.ownership import Ownership
from tests.resources.addresses import (
    DAY,
    PURCHASE,
    A,
    B,
    TogetherTransport,
    bought,
    buy,
    debits,
    inputs_of,
    killed,
)
from tests.resources.conftest import GOOD, EmulatorClock, ProcessKilled, ResourceHarness
from tests.support.account import Account


@contextmanager
def separate_machines(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[None]:
    """Each thread is a machine of its own: it sees no other thread's local files."""
    with monkeypatch.context() as patch:
        patch.setattr(
            private_directory, "_location", lambda *_: home / f"machine-{threading.current_thread().name}"
        )
        yield


@contextmanager
def meeting_of(runs: int) -> Iterator[threading.Barrier]:
    """Where the purchases of several runs meet. Whoever waits for a lock does not come: the others go on."""
    meeting = threading.Barrier(runs)

    class Pauses:
        monotonic = staticmethod(time.monotonic)

        @staticmethod
        def sleep(seconds: float) -> None:
            meeting.abort()
            time.sleep(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_store, "time", Pauses)
        yield meeting


def at_the_same_time(
    harness: ResourceHarness, server: str, *identities: str
) -> dict[str, ServerIpState | ResourceError]:
    """What each of the runs ends with; their purchases leave together, if nothing keeps them apart."""
    ends: dict[str, ServerIpState | ResourceError] = {}

    def run(identity: str) -> None:
        transport = TogetherTransport(meeting=meeting)
        try:
            ends[identity] = buy(harness, server, identity, transport=transport)
        except ResourceError as error:
            ends[identity] = error
        finally:
            meeting.abort()  # whoever waits for this run's purchase goes on

    threads = [
        threading.Thread(target=run, args=(identity,), name=str(number))
        for number, identity in enumerate(identities)
    ]
    with meeting_of(len(identities)) as meeting:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ends


def repeated(
    harness: ResourceHarness, server: str, ends: dict[str, ServerIpState | ResourceError]
) -> dict[str, str]:
    """The ids in the states of all runs, the failed ones repeated."""
    return {
        identity: end.id if isinstance(end, ServerIpState) else buy(harness, server, identity).id
        for identity, end in ends.items()
    }


def test_two_stacks_of_one_machine_buy_one_after_the_other(harness: ResourceHarness, server: str) -> None:
    ends = at_the_same_time(harness, server, A, B)
    ids = repeated(harness, server, ends)
    assert sorted(ids.values()) == sorted(bought(harness))
    assert len(debits(harness)) == len({*ids.values()}) == 2


def test_two_stacks_of_two_machines_get_an_address_each(
    harness: ResourceHarness, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(harness, server, A, B)
        assert len(debits(harness)) == 2
        assert all(isinstance(end, ServerIpState) for end in ends.values()), ends
        ids = {identity: end.id for identity, end in ends.items() if isinstance(end, ServerIpState)}
        assert sorted(ids.values()) == sorted(bought(harness))


@pytest.mark.parametrize("dies", [(A,), (B,), (A, B)])
def test_two_machines_one_killed_after_both_paid(
    harness: ResourceHarness,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    dies: tuple[str, ...],
) -> None:
    """Both purchases were made after the same look at the account; what is repeated on a third machine has
    the keys alone to go by.
    """
    made_first = inputs_of(server)
    with separate_machines(monkeypatch, tmp_path), meeting_of(2) as meeting:
        kept: dict[str, str] = {}

        class Dies(TogetherTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = super().handle_request(request)
                if request.method == "POST" and request.url.path.endswith(PURCHASE):
                    response.read()
                    raise ProcessKilled
                return response

        def run(identity: str) -> None:
            transport = (Dies if identity in dies else TogetherTransport)(meeting=meeting)
            with suppress(ProcessKilled):
                kept[identity] = apply.create(
                    harness.context(identity=identity, transport=transport), SERVER_IP, made_first
                ).id

        threads = [
            threading.Thread(target=run, args=(identity,), name=identity.replace("/", "-"))
            for identity in (A, B)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(debits(harness)) == 2
    for identity in dies:
        harness.another_machine()
        kept[identity] = buy(harness, server, identity).id
    assert sorted(kept.values()) == sorted(bought(harness))
    assert len(debits(harness)) == 2


def test_where_refusals_are_not_remembered_two_machines_stop_and_pay_no_more(
    harness: ResourceHarness, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    harness.account.variant(refusals_stored=False)
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(harness, server, A, B)
    ids = [end.id for end in ends.values() if isinstance(end, ServerIpState)]
    assert len({*ids}) == len(ids)
    for identity, end in ends.items():
        if isinstance(end, ResourceError):
            assert "Next: give adopt_id the one that no other stack or play has" in str(end)
            harness.another_machine()
            with pytest.raises(ResourceError, match="nothing"):
                buy(harness, server, identity)
    assert len(debits(harness)) == len(bought(harness)) == 2


@pytest.mark.parametrize("machines", [1, 2])
def test_two_plays_that_want_the_first_address_buy_one(
    harness: ResourceHarness, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machines: int
) -> None:
    ids: list[str] = []

    def run() -> None:
        ids.append(
            buy(
                harness,
                server,
                "ansible:/server_ip/1",
                transport=TogetherTransport(meeting=meeting),
                name_is_identity=True,
            ).id
        )
        meeting.abort()

    apart = separate_machines(monkeypatch, tmp_path) if machines == 2 else nullcontext()
    with apart, meeting_of(2) as meeting:
        threads = [threading.Thread(target=run, name=str(number)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(ids) == 2
    assert len({*ids}) == 1
    assert len(debits(harness)) == len(bought(harness)) == 1


def test_plays_of_two_scopes_that_want_the_first_address_buy_one(
    harness: ResourceHarness, server: str
) -> None:
    """Both looked before either bought: the second is told to look again, and finds the first address in
    its place.
    """
    buy(harness, server, "ansible:one/server_ip/1", name_is_identity=True)
    with pytest.raises(
        ResourceError,
        match=r"got addresses since this run looked: .*; nothing was bought\. "
        r"Next: run again",
    ):
        buy(harness, server, "ansible:two/server_ip/1", name_is_identity=True)
    assert len(debits(harness)) == len(bought(harness)) == 1


def test_another_stack_of_this_machine_is_known_later(harness: ResourceHarness, server: str) -> None:
    first = buy(harness, server, A)
    harness.control("POST", "/clock", {"advance": 30 * DAY})
    second = buy(harness, server, B)
    assert sorted((first.id, second.id)) == sorted(bought(harness))
    assert len(debits(harness)) == 2


def test_an_address_that_another_running_process_has_is_not_adopted(
    harness: ResourceHarness, server: str
) -> None:
    first = buy(harness, server, A)
    with pytest.raises(
        ResourceError,
        match=r"adopt_id: another resource has server address .* already; "
        r"nothing was changed",
    ):
        buy(harness, server, B, adopt_id=first.id.rpartition("/")[2])
    ownership = Ownership()
    ownership.add(A, first.id)
    harness.another_machine()
    with pytest.raises(ResourceError, match="another resource has"):
        buy(harness, server, B, adopt_id=first.id.rpartition("/")[2], ownership=ownership)


def test_without_a_private_directory_nothing_is_bought(
    harness: ResourceHarness, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(local_files.LocalFilesError, match=r"Next: .*HOSTING_RUNTIME_DIR"):
        buy(harness, server)
    assert debits(harness) == []


def test_with_strict_nothing_is_taken_over_without_a_scope(harness: ResourceHarness, server: str) -> None:
    killed(harness, server, after=True)
    with pytest.raises(ResourceError, match=r"strict is set and .*; nothing was bought\. Next: set adopt_id"):
        buy(harness, server, strict=True)
    assert buy(harness, server, strict=True, scope="mine").id == bought(harness)[0]
    assert len(debits(harness)) == 1


def test_a_purchase_beside_one_that_is_still_coming_looks_again(
    slow: ResourceHarness, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second purchase is refused while the first one's address is assigned; by then the
    addresses are others, and who owns them is unknown.
    """
    server = slow.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id
    sleep = EmulatorClock.sleep

    def sleep_after_both_purchases(clock: EmulatorClock, seconds: float) -> None:
        found = slow.control("GET", "/requests?since=0")
        while sum(row["method"] == "POST" and row["path"].endswith("/ips") for row in found) < 2:
            found = slow.control("GET", "/requests?since=0")
        sleep(clock, seconds)

    monkeypatch.setattr(EmulatorClock, "sleep", sleep_after_both_purchases)
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(slow, server, A, B)
    states = [end for end in ends.values() if isinstance(end, ServerIpState)]
    assert [state.id for state in states] == bought(slow)
    assert len(debits(slow)) == 1
    (stopped,) = (str(end) for end in ends.values() if isinstance(end, ResourceError))
    assert "of unknown origin" in stopped


def test_what_was_bought_since_the_quote_is_counted(harness: ResourceHarness, server: str) -> None:
    """The preview asked for the quote; then an interrupted run elsewhere bought an address that is not
    assigned yet, which only its invoice shows."""
    context = harness.context(identity=A, wait_timeout=10.0)
    assert SERVER_IP.takeover(context, inputs_of(server)) is None
    harness.fault({"ip": "never"}, path="^/servers/[0-9]+/ips$")
    killed(harness, server, after=True)
    harness.another_machine()
    with pytest.raises(ResourceError, match=r"counts 1 bought addresses and shows 0 .*; nothing was bought"):
        apply.create(context, SERVER_IP, inputs_of(server))
    assert len(debits(harness)) == 1


def test_an_address_that_was_released_since_the_quote_is_not_waited_for(
    harness: ResourceHarness, server: str
) -> None:
    """By this run or in the control panel."""
    context = harness.context(identity=A)
    first: ServerIpState = apply.create(context, SERVER_IP, inputs_of(server))
    SERVER_IP.delete(context, first)
    second: ServerIpState = apply.create(context, SERVER_IP, inputs_of(server))
    harness.control("DELETE", f"/servers/{second.id.replace('/', '/ips/')}")
    began = context.clock.monotonic()
    third: ServerIpState = apply.create(context, SERVER_IP, inputs_of(server))
    assert [third.id] == bought(harness)
    assert context.clock.monotonic() - began < 10
    assert len(debits(harness)) == 3


@pytest.fixture
def slow(tmp_path: Path) -> ResourceHarness:
    """An account whose addresses are assigned a minute after they were bought."""
    return ResourceHarness(Account(ip_delay=60), tmp_path)


@pytest.mark.parametrize("after", [False, True])
def test_an_address_that_is_still_coming_is_waited_for(slow: ResourceHarness, after: bool) -> None:
    server = slow.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id
    killed(slow, server, after=after)
    taken = SERVER_IP.takeover(slow.context(identity=A), inputs_of(server))
    assert (taken is not None) is after
    assert bought(slow) == []
    assert buy(slow, server).id == bought(slow)[0]
    assert len(debits(slow)) == 1
