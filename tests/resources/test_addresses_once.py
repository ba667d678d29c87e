"""An address is bought once: after crashes of any age, with wrong clocks, and by runs that know nothing of each other."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from pulumi_hosting.emulator import running
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.planning import engine
from pulumi_hosting.provider.adapter import Adapter
from pulumi_hosting.provider.process import ProviderSession
from pulumi_hosting.rehearsal.control_client import Control
from pulumi_hosting.resources.server_ip import SERVER_IP, ServerIpInputs, ServerIpState
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import ResourceError
from pulumi_hosting.session.ownership import Ownership
from tests.resources.conftest import GOOD, Dying, EmulatorClock, House, Killed

PURCHASE = "/ips"
A, B = "pulumi:t/dev/server_ip/a", "pulumi:t/prod/server_ip/a"
DAY = 86400


@dataclass
class DyingAtPurchase(Dying):
    """Dies at the first purchase of an address, before it is sent or after it was processed."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith(PURCHASE):
            self.at = len(self.sent)
        return super().handle_request(request)


@dataclass
class WrongClock(EmulatorClock):
    """This machine's clock is ``offset`` wrong."""

    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.fromisoformat(self.control("GET", "/clock")["now"]) + self.offset


@dataclass
class Together(Dying):
    """Purchases of several runs leave together: each waits until the others want to send theirs as well, or have ended."""

    meeting: threading.Barrier = field(kw_only=True)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and request.url.path.endswith(PURCHASE):
            with suppress(threading.BrokenBarrierError):
                self.meeting.wait(timeout=20)
        return super().handle_request(request)


@pytest.fixture
def server(house: House) -> str:
    return house.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id


def inputs_of(server: str, **more: Any) -> ServerIpInputs:
    found = engine.check(SERVER_IP, {"server_id": server, **more})
    assert not found.failures
    inputs: ServerIpInputs = found.inputs
    return inputs


def buy(
    house: House, server: str, identity: str = A, *, adopt_id: str | None = None, order_attempt: int | None = None, **more: Any
) -> ServerIpState:
    given = {name: value for name, value in (("adopt_id", adopt_id), ("order_attempt", order_attempt)) if value is not None}
    state: ServerIpState = engine.create(house.context(identity=identity, **more), SERVER_IP, inputs_of(server, **given))
    return state


def bought(house: House) -> list[str]:
    return [f"{row['server_id']}/{row['id']}" for row in house.control("GET", "/objects")["addresses"] if row.get("bought")]


def debits(house: House) -> list[Decimal]:
    return [Decimal(str(row["amount"])) for row in house.control.ledger() if row["operation"] == "add_server_ip"]


def killed(house: House, server: str, after: bool, **more: Any) -> None:
    with pytest.raises(Killed):
        buy(house, server, transport=DyingAtPurchase(after=after), **more)


# --- a crash, and a repetition at any time (M4) ------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "elsewhere"), [(0, False), (0, True), (-1, True), (1, True)])
@pytest.mark.parametrize("days", [0, 6.9, 7.1, 30])
def test_a_killed_purchase_is_never_paid_twice(house: House, server: str, days: float, offset: int, elsewhere: bool) -> None:
    clock = WrongClock(house.control, offset=timedelta(days=offset))
    killed(house, server, after=True, clock=clock)
    assert len(debits(house)) == 1
    house.control("POST", "/clock", {"advance": days * DAY})
    if elsewhere:
        house.another_machine()
    if days < 7:
        assert buy(house, server, clock=clock).id == bought(house)[0]
    else:
        with pytest.raises(ResourceError, match="nothing was bought") as stopped:
            buy(house, server, clock=clock)
        id = bought(house)[0].rpartition("/")[2]
        assert "set adopt_id" in str(stopped.value)
        assert buy(house, server, clock=clock, adopt_id=id).id == bought(house)[0]
    assert len(debits(house)) == len(bought(house)) == 1


@pytest.mark.parametrize("days", [0, 7.1, 30])
def test_a_purchase_that_was_never_sent_is_made_once_later(house: House, server: str, days: float) -> None:
    killed(house, server, after=False)
    assert debits(house) == []
    house.control("POST", "/clock", {"advance": days * DAY})
    buy(house, server)
    assert len(debits(house)) == len(bought(house)) == 1


def test_order_attempt_allows_for_the_addresses_that_were_named_and_no_more(house: House, server: str) -> None:
    buy(house, server, B)
    house.another_machine()
    killed(house, server, after=True, order_attempt=1)
    house.control("POST", "/clock", {"advance": 30 * DAY})
    house.another_machine()
    with pytest.raises(ResourceError, match="nothing was bought"):
        buy(house, server, order_attempt=1)
    assert len(debits(house)) == len(bought(house)) == 2


def test_the_purchase_is_kept_in_the_state(house: House, server: str) -> None:
    state = buy(house, server)
    assert state.purchase_key is not None
    assert state.purchase_key.startswith("iac2-")
    invoices = [row for row in house.control("GET", "/objects")["invoices"] if row["type"] == "ip_purchase"]
    assert [state.invoice_id] == [str(row["id"]) for row in invoices]


# --- several runs (M5, M19) --------------------------------------------------------------------------------------------------


@contextmanager
def separate_machines(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[None]:
    """Each thread is a machine of its own: it sees no other thread's local files."""
    with monkeypatch.context() as patch:
        patch.setattr(local_files, "_location", lambda: home / f"machine-{threading.current_thread().name}")
        yield


def at_the_same_time(house: House, server: str, *identities: str) -> dict[str, ServerIpState | ResourceError]:
    """What each of the runs ends with; their purchases leave together, if nothing keeps them apart."""
    meeting = threading.Barrier(len(identities))
    ends: dict[str, ServerIpState | ResourceError] = {}

    def run(identity: str) -> None:
        transport = Together(meeting=meeting)
        try:
            ends[identity] = buy(house, server, identity, transport=transport)
        except ResourceError as error:
            ends[identity] = error
        finally:
            meeting.abort()  # whoever waits for this run's purchase goes on

    threads = [threading.Thread(target=run, args=(identity,), name=str(number)) for number, identity in enumerate(identities)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def repeated(house: House, server: str, ends: dict[str, ServerIpState | ResourceError]) -> dict[str, str]:
    """The ids in the states of all runs, the failed ones repeated."""
    return {identity: end.id if isinstance(end, ServerIpState) else buy(house, server, identity).id for identity, end in ends.items()}


def test_two_stacks_of_one_machine_buy_one_after_the_other(house: House, server: str) -> None:
    ends = at_the_same_time(house, server, A, B)
    ids = repeated(house, server, ends)
    assert sorted(ids.values()) == sorted(bought(house))
    assert len(debits(house)) == len({*ids.values()}) == 2


def test_two_stacks_of_two_machines_get_an_address_each(house: House, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(house, server, A, B)
        assert len(debits(house)) == 2
        assert all(isinstance(end, ServerIpState) for end in ends.values()), ends
        ids = {identity: end.id for identity, end in ends.items() if isinstance(end, ServerIpState)}
        assert sorted(ids.values()) == sorted(bought(house))


@pytest.mark.parametrize("dies", [(A,), (B,), (A, B)])
def test_two_machines_one_killed_after_both_paid(
    house: House, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dies: tuple[str, ...]
) -> None:
    """Both purchases were made from one and the same world; what is repeated on a third machine has the keys alone to go by."""
    made_first = inputs_of(server)
    with separate_machines(monkeypatch, tmp_path):
        meeting = threading.Barrier(2)
        kept: dict[str, str] = {}

        class Dies(Together):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = super().handle_request(request)
                if request.method == "POST" and request.url.path.endswith(PURCHASE):
                    response.read()
                    raise Killed
                return response

        def run(identity: str) -> None:
            transport = (Dies if identity in dies else Together)(meeting=meeting)
            with suppress(Killed):
                kept[identity] = engine.create(house.context(identity=identity, transport=transport), SERVER_IP, made_first).id

        threads = [threading.Thread(target=run, args=(identity,), name=identity.replace("/", "-")) for identity in (A, B)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(debits(house)) == 2
    for identity in dies:
        house.another_machine()
        kept[identity] = buy(house, server, identity).id
    assert sorted(kept.values()) == sorted(bought(house))
    assert len(debits(house)) == 2


def test_where_refusals_are_not_remembered_two_machines_stop_and_pay_no_more(
    house: House, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    house.read_as(refusals_stored=False)
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(house, server, A, B)
    ids = [end.id for end in ends.values() if isinstance(end, ServerIpState)]
    assert len({*ids}) == len(ids)
    for identity, end in ends.items():
        if isinstance(end, ResourceError):
            assert "Next: give adopt_id the one that no other stack or play has" in str(end)
            house.another_machine()
            with pytest.raises(ResourceError, match="nothing"):
                buy(house, server, identity)
    assert len(debits(house)) == len(bought(house)) == 2


@pytest.mark.parametrize("machines", [1, 2])
def test_two_plays_that_want_the_first_address_buy_one(
    house: House, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machines: int
) -> None:
    meeting = threading.Barrier(2)
    ids: list[str] = []

    def run() -> None:
        ids.append(buy(house, server, "ansible:/server_ip/1", transport=Together(meeting=meeting), name_is_identity=True).id)
        meeting.abort()

    with separate_machines(monkeypatch, tmp_path) if machines == 2 else nullcontext():
        threads = [threading.Thread(target=run, name=str(number)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(ids) == 2
    assert len({*ids}) == 1
    assert len(debits(house)) == len(bought(house)) == 1


def test_plays_of_two_scopes_that_want_the_first_address_buy_one(house: House, server: str) -> None:
    """Both looked before either bought: the second is told to look again, and finds the first address in its place."""
    buy(house, server, "ansible:one/server_ip/1", name_is_identity=True)
    with pytest.raises(ResourceError, match=r"got addresses since this run looked: .*; nothing was bought\. Next: run again"):
        buy(house, server, "ansible:two/server_ip/1", name_is_identity=True)
    assert len(debits(house)) == len(bought(house)) == 1


def test_another_stack_of_this_machine_is_known_later(house: House, server: str) -> None:
    first = buy(house, server, A)
    house.control("POST", "/clock", {"advance": 30 * DAY})
    second = buy(house, server, B)
    assert sorted((first.id, second.id)) == sorted(bought(house))
    assert len(debits(house)) == 2


def test_an_address_that_another_running_process_has_is_not_adopted(house: House, server: str) -> None:
    first = buy(house, server, A)
    with pytest.raises(ResourceError, match=r"adopt_id: another resource has server address .* already; nothing was changed"):
        buy(house, server, B, adopt_id=first.id.rpartition("/")[2])
    ownership = Ownership()
    ownership.add(A, first.id)
    house.another_machine()
    with pytest.raises(ResourceError, match="another resource has"):
        buy(house, server, B, adopt_id=first.id.rpartition("/")[2], ownership=ownership)


def test_without_a_private_directory_nothing_is_bought(house: House, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "file"))
    with pytest.raises(local_files.LocalFilesError, match=r"Next: .*HOSTING_RUNTIME_DIR"):
        buy(house, server)
    assert debits(house) == []


def test_with_strict_nothing_is_taken_over_without_a_scope(house: House, server: str) -> None:
    killed(house, server, after=True)
    with pytest.raises(ResourceError, match=r"strict is set; nothing was bought\. Next: set adopt_id"):
        buy(house, server, strict=True)
    assert buy(house, server, strict=True, scope="mine").id == bought(house)[0]
    assert len(debits(house)) == 1


# --- announced (M30) ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_an_interrupted_run_bought_is_announced_and_costs_nothing(house: House, server: str, elsewhere: bool) -> None:
    inputs = inputs_of(server)
    assert SERVER_IP.takeover(house.context(identity=A), inputs) is None
    killed(house, server, after=True)
    if elsewhere:
        house.another_machine()
    context = house.context(identity=A)
    taken = SERVER_IP.takeover(context, inputs)
    assert taken is not None
    assert taken.state.id == bought(house)[0]
    announced = taken.announcement(context.service_now())
    assert announced.startswith(f"takes over server address {taken.state.id}, ordered ")
    assert {request.split()[0] for request in house.transports[-1].sent} == {"GET"}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_preview_says_what_the_purchase_will_do_after_the_key_s_seven_days(house: House, server: str, elsewhere: bool) -> None:
    id = buy(house, server).id  # and the state forgot it
    house.control("POST", "/clock", {"advance": 8 * DAY})
    if elsewhere:
        house.another_machine()
        taken = SERVER_IP.takeover(house.context(identity=A), inputs_of(server))
        assert taken is not None
        assert "the run will stop: it is older than the 7 days of its key" in taken.reason
        with pytest.raises(ResourceError, match="nothing was bought"):
            buy(house, server)
    else:
        with pytest.raises(ResourceError) as announced:
            SERVER_IP.takeover(house.context(identity=A), inputs_of(server))
        with pytest.raises(ResourceError) as stopped:
            buy(house, server)
        assert str(announced.value) == str(stopped.value)
        assert str(stopped.value).endswith(f'Next: set adopt_id="{id.rpartition("/")[2]}" to take it over')
    assert buy(house, server, adopt_id=id.rpartition("/")[2]).id == id
    assert len(debits(house)) == len(bought(house)) == 1


def test_a_preview_under_strict_stops_as_the_purchase_does(house: House, server: str) -> None:
    buy(house, server)
    with pytest.raises(ResourceError, match="strict is set; nothing was bought"):
        SERVER_IP.takeover(house.context(identity=A, strict=True), inputs_of(server))
    assert len(debits(house)) == 1


def test_what_was_announced_as_found_and_is_paid_after_all_is_approved_first(house: House, server: str) -> None:
    """A preview cannot know what the other resources of the program have: here their claims come between preview and purchase."""
    first = buy(house, server, A)
    house.another_machine()
    context = house.context(identity="pulumi:t/dev/server_ip/b")
    taken = SERVER_IP.takeover(context, inputs_of(server))
    assert taken is not None
    assert "nothing is paid before that is known" in taken.reason
    context.ownership.add(A, first.id)
    approved: list[Decimal] = []

    def refuse(cost: Cost) -> None:
        approved.append(cost.amount)
        raise ResourceError("beyond the limit")

    context.approve = refuse
    with pytest.raises(ResourceError, match="beyond the limit"):
        engine.create(context, SERVER_IP, inputs_of(server))
    assert approved == debits(house) == [Decimal("2.00")]


@pytest.mark.parametrize("after", [False, True])
def test_an_address_that_is_still_coming_is_waited_for(slow: House, after: bool) -> None:
    server = slow.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id
    killed(slow, server, after=after)
    taken = SERVER_IP.takeover(slow.context(identity=A), inputs_of(server))
    assert (taken is not None) is after
    assert bought(slow) == []
    assert buy(slow, server).id == bought(slow)[0]
    assert len(debits(slow)) == 1


def test_a_purchase_beside_one_that_is_still_coming_looks_again(slow: House, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second purchase is refused while the first one's address is assigned; by then the world is another, and its owner unknown."""
    server = slow.order({**GOOD, "name": "base-1"}, identity="pulumi:t/dev/server/base").id
    with separate_machines(monkeypatch, tmp_path):
        ends = at_the_same_time(slow, server, A, B)
    states = [end for end in ends.values() if isinstance(end, ServerIpState)]
    assert [state.id for state in states] == bought(slow)
    assert len(debits(slow)) == 1
    (stopped,) = (str(end) for end in ends.values() if isinstance(end, ResourceError))
    assert "nothing here explains" in stopped


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[House]:
    """An account whose addresses are assigned a minute after they were bought."""
    with running(clock="manual", ip_delay=60) as emulator:
        made = House(emulator, Control(emulator.control_url), tmp_path)
        yield made
        for transport in made.transports:
            transport.close()


def test_what_an_interrupted_run_bought_leaves_the_limit_untouched(house: House, server: str) -> None:
    killed(house, server, after=True)
    told: list[str] = []
    session = ProviderSession({"HOSTING_API_KEY": house.emulator.live_key, "HOSTING_BASE_URL": house.emulator.base_url})
    session.configure({"maxCharge": "1.99"})  # an address costs 2.00
    adapter = Adapter(SERVER_IP, session, told.append)
    inputs, failures = adapter.check({}, {"serverId": server, "__identity": A})
    assert failures == {}
    assert [line for line in told if line.startswith(f"a: takes over server address {bought(house)[0]}, ordered ")]
    assert session.budget.total("EUR") == 0
    id, _ = adapter.create(inputs)
    assert [id] == bought(house)
    assert len(debits(house)) == 1
    assert session.budget.total("EUR") == 0
    _, failures = adapter.check({}, {"serverId": server, "__identity": B})
    assert "maxCharge" in " ".join(failures.values())
