"""Whole runs: two backends on one account, an interrupted wait, a price that rises. Every test ends by
asking the account.
"""

import os
import re
import shlex
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pulumi_hosting.rehearsal.engines import Engine
from tests.support.programs import Program, make_program
from tests.support.waiting import HANG_SECONDS, wait_until

SERVER: dict[str, Any] = {"tariff_id": 1, "os": "debian-12"}
NO_ROOM = {
    "method": "POST",
    "path": "^/servers$",
    "action": {"status": 429, "code": "rate_limited", "retry_after": 500},
}
SLOW = {"method": "POST", "path": "^/servers$", "action": {"panel_timeout": "active"}}


@pytest.fixture
def colleagues(form: str, engine: Engine, emulator: Any, tmp_path: Path) -> tuple[Program, Program]:
    """One program, and two backends that know nothing of each other."""
    ours, theirs = (
        make_program(engine, emulator, tmp_path / name / "program", tmp_path / name / "home", form)
        for name in ("a", "b")
    )
    return ours, theirs


def test_two_backends_with_one_project_and_stack(colleagues: tuple[Program, Program]) -> None:
    ours, theirs = colleagues
    for program in colleagues:
        program.declare({"web": ("Server", SERVER)})
    ours.run(ours.stack.up())
    (web,) = ours.living
    theirs.stack.allow("the other backend has it", web["id"])
    # Strict: without a scope nothing is taken over, and nothing is sent.
    theirs.stack.environ["HOSTING_STRICT"] = "true"
    requests = len(ours.control("GET", "/requests"))
    refused = theirs.stack.preview()
    assert refused.exit_code != 0
    assert f"server {web['id']}" in refused.output
    assert {row["method"] for row in ours.control("GET", "/requests")[requests:]} == {"GET"}
    # Otherwise the takeover is announced, at no charge.
    del theirs.stack.environ["HOSTING_STRICT"]
    looked = theirs.run(theirs.stack.preview())
    assert f"takes over server {web['id']}" in looked.output
    assert "charges" not in looked.output
    # With a scope it is another server.
    theirs.stack.environ["HOSTING_SCOPE"] = "theirs"
    theirs.declare({"web": ("Server", {**SERVER, "name": "theirs"})})
    theirs.run(theirs.stack.up())
    assert sorted(server["name"] for server in ours.living) == ["theirs", "web"]
    theirs.run(theirs.stack.destroy())
    assert [server["id"] for server in ours.living] == [web["id"]]
    assert ours.resources()["web"]["id"] == str(web["id"])
    ours.run(ours.stack.destroy())
    assert (ours.living, int(ours.moved())) == ([], 0)


def test_what_a_second_backend_took_over_the_first_one_does_not_delete(
    colleagues: tuple[Program, Program],
) -> None:
    ours, theirs = colleagues
    for program in colleagues:
        program.declare({"web": ("Server", SERVER)})
    ours.run(ours.stack.up())
    (web,) = ours.living
    taken = theirs.run(theirs.stack.up())
    assert f"takes over server {web['id']}" in taken.output
    for flags in ((), ("--refresh",)):
        refused = ours.stack.destroy(*flags)
        assert refused.exit_code != 0
        assert (
            f"server {web['id']}: a later run took it over, from another backend perhaps; nothing was deleted"
        ) in refused.output
        assert [server["id"] for server in ours.living] == [web["id"]]
    ours.run(ours.stack.refresh())
    assert ours.stack.destroy().exit_code != 0
    advice = re.search(r"Next: pulumi (state delete '\S+') leaves it", refused.output)
    assert advice is not None
    assert f"set adopt_id={web['id']} and run pulumi up" in refused.output
    ours.run(ours.stack.run(*shlex.split(advice[1]), "--yes"))
    ours.stack.allow("the other backend has it", web["id"])
    ours.run(ours.stack.destroy())
    assert [server["id"] for server in ours.living] == [web["id"]]
    # Taking it back: then it is the other backend's destroy that is refused.
    ours.declare({"web": ("Server", {**SERVER, "adopt_id": web["id"]})})
    ours.run(ours.stack.up())
    assert theirs.stack.destroy("--refresh").exit_code != 0
    assert [server["id"] for server in ours.living] == [web["id"]]
    ours.run(ours.stack.destroy())
    assert (ours.living, int(ours.moved())) == ([], 0)
    theirs.run(theirs.stack.destroy())  # it is gone, and that is what was wanted


@pytest.mark.emulator(clock="manual", provisioning_delay=600)
def test_the_first_interrupt_ends_the_wait_for_an_order(program: Program) -> None:
    program.control("POST", "/faults", SLOW)
    program.declare({"web": ("Server", SERVER)})
    running = program.start_cold()
    wait_until(lambda: program.charges >= 1, running)
    ordered = next(
        row["seq"]
        for row in program.control("GET", "/requests")
        if (row["method"], row["path"]) == ("POST", "/servers")
    )
    wait_until(
        lambda: any(
            row["path"].startswith("/orders") and row["seq"] > ordered
            for row in program.control("GET", "/requests")
        ),
        running,
    )
    running.send_signal(signal.SIGINT)
    assert running.wait(HANG_SECONDS) != 0  # without it the wait is 600 seconds
    program.control("POST", "/clock", {"advance": 601})
    program.run(program.stack.up())
    assert [str(server["id"]) for server in program.living] == [program.resources()["web"]["id"]]
    assert program.moved() == Decimal("5.00")


@pytest.mark.both_providers
@pytest.mark.emulator(clock="manual", provisioning_delay=600)
@pytest.mark.parametrize(
    ("fault", "group"),
    [
        pytest.param(SLOW, True, id="orders-terminal"),
        pytest.param(NO_ROOM, False, id="rate-limit-engine"),
        pytest.param(SLOW, False, id="orders-engine", marks=pytest.mark.slow),
        pytest.param(NO_ROOM, True, id="rate-limit-terminal", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_ordered_after_an_interrupt_of_six_servers(
    program: Program, tmp_path: Path, fault: dict[str, Any], *, group: bool
) -> None:
    """The SDK serves dynamic providers on four threads: there four steps wait, and two have not begun."""
    waiting = {"dynamic": 4, "native": 6}[program.form]
    program.control("POST", "/faults", {"times": 6, **fault})
    # the discount of the fifth server and those after it is less than a cent: every price is the same
    program.control("PATCH", "/tariffs/1", {"price_monthly": "0.10"})
    program.declare({f"s{number}": ("Server", SERVER) for number in range(6)})
    printed = tmp_path / "printed"
    with printed.open("wb") as output:
        running = program.start_cold(output=output, process_group=0)
    if fault is SLOW:
        wait_until(lambda: program.charges >= waiting, running)
    else:
        wait_until(lambda: printed.read_text().count("rate limit reached: waiting ") >= waiting, running)
    before = program.requested("POST").count("/servers")
    charged = program.charges
    (os.killpg if group else os.kill)(running.pid, signal.SIGINT)
    assert running.wait(HANG_SECONDS) != 0  # without it the waits are 500 seconds and more
    assert program.requested("POST").count("/servers") == before
    assert (program.charges, len(program.objects("orders"))) == (charged, charged)
    assert charged == (waiting if fault is SLOW else 0)
    program.control("DELETE", "/faults")
    program.control("POST", "/clock", {"advance": 601})
    program.use_new_key()  # for which nothing has to wait
    program.run(program.stack.up())
    assert {str(server["id"]) for server in program.living} == {
        item["id"] for item in program.resources().values()
    }
    assert (len(program.living), program.moved()) == (6, Decimal("0.60"))


def test_a_price_that_rises_stops_the_run(program: Program) -> None:
    """The quote of 5.00 is answered late; before the order the price rises."""
    chained = "pulumi.ResourceOptions(depends_on=[one])"
    program.declare(
        {"one": ("Server", SERVER)},
        f'two = hosting.Server("two", tariff_id=1, os="debian-12", opts={chained})',
    )
    program.control("POST", "/faults", {"path": "^/catalog/quote$", "action": {"delay": 3}})
    running = program.start_cold()
    wait_until(
        lambda: any(row["path"].startswith("/catalog/quote") for row in program.control("GET", "/requests")),
        running,
    )
    program.control("PATCH", "/tariffs/1", {"price_monthly": "50.00"})
    assert running.wait(HANG_SECONDS) != 0
    assert [server["name"] for server in program.living] == ["one"]
    assert program.moved() == Decimal("50.00")
    assert [item["id"] for item in program.resources().values()] == [str(program.living[0]["id"])]
