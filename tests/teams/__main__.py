"""Many machines, one key, one store: ``python -m tests.teams``.

``--machines 20 --processes 6 --orders 1000 --limit 400`` is the whole proof; ``--only speed`` a part of it.
Each part ends with a line of figures, asks the account, and fails if a promise was broken.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pulumi_hosting.emulator import running
from pulumi_hosting.rehearsal.control_client import Control
from tests.teams.fleet import Fleet, Process, Work, between_orders, charged, make, refused, roomy_key, servers
from tests.teams.relays import two_relays
from tests.teams.servers import IS_HERE, Proxy, RedisServer

SERVER = {"name": "{}", "tariff_id": 1, "os": "debian-12"}
WINDOW = 60.0
LEASE = 6.0
"""Seconds, where processes are stopped for longer."""
SLOWEST = 1.05
"""Times the ideal."""


@dataclass
class Size:
    machines: int = 20
    processes: int = 6
    orders: int = 1000
    limit: int = 400
    events: int = 10_000


@contextmanager
def fleet(
    work: Work, limit: int = 10**6, lease: float | None = None
) -> Iterator[tuple[Fleet, Control, RedisServer]]:
    store = RedisServer()
    try:
        with running() as emulator, tempfile.TemporaryDirectory(prefix="teams-") as folder:
            control = Control(emulator.control_url)
            control("PATCH", "/account", {"balance": "1000000.00"})
            yield Fleet(emulator, roomy_key(control, limit), Path(folder), work, lease), control, store
    finally:
        store.stop()


def undisturbed(elapsed: float, alive: list[Process]) -> None:
    """Nothing happens."""


def speed(size: Size) -> list[str]:
    """Orders in the service's windows, as fast as it allows."""
    with fleet(make("server", SERVER), size.limit) as (some, control, store):
        found = _processes(size, store.url)
        some.finish(found, disturb=undisturbed, most_runs=1)
        took, ideal = between_orders(control), WINDOW * (-(-size.orders // size.limit) - 1)
        print(
            f"speed: {size.orders} orders of {size.machines} machines x {size.processes} processes at "
            f"{size.limit} a minute: {took:.1f} s, {took / ideal:.3f} x ideal, {refused(control)} x 429",
            flush=True,
        )
        problems = _problems(some, control, size.orders, most_refused=0)
        return problems + [f"{took / ideal:.3f} x ideal"] * (took > SLOWEST * ideal)


def disturbed(size: Size, seed: int = 0) -> list[str]:
    """The same, while processes are killed and stopped, a clock is wrong, one machine is cut off from the
    store and another from the service, and the store is lost."""
    dice = random.Random(seed)  # noqa: S311  # which ones, not a secret
    with fleet(make("server", SERVER), size.limit, LEASE) as (some, control, store):
        proxy, to_service = Proxy(store.port), Proxy(urlsplit(some.emulator.base_url).port or 0)
        found = _processes(size, store.url)
        for number, process in enumerate(found):
            process.stop_at = 1 + number // 3 % 12 if number % 3 == 0 else None
            if process.machine == 0:
                process.days_off = 1.0
            if process.machine == 1:
                process.store = f"redis://127.0.0.1:{proxy.port}/0"
            if process.machine == 2:
                process.service_port = to_service.port
        kills = [dice.uniform(0.5, 20.0) for _ in range(max(1, size.orders // 20))]
        # All of it before the first stopped process goes on: a run lasts that long however fast the rest is.
        # Nothing is ordered between the loss of the store and one lease later.
        steps: list[tuple[float, Callable[[], None]]] = [
            (1.0, store.restart_empty),
            (3.0, proxy.cut),
            (4.0, to_service.cut),
            (8.0, proxy.heal),
            (8.5, to_service.heal),
        ]
        killed = 0

        def disturb(elapsed: float, alive: list[Process]) -> None:
            nonlocal killed
            while steps and elapsed >= steps[0][0]:
                steps.pop(0)[1]()
            while kills and elapsed >= min(kills):
                kills.remove(min(kills))
                killed += 1
                os.kill(dice.choice(alive).pid, signal.SIGKILL)

        took = some.finish(found, disturb=disturb, most_runs=10)
        proxy.close()
        to_service.close()
        reruns = sum(process.runs - 1 for process in found)
        print(
            f"disturbed: {size.orders} orders in {took:.1f} s: {killed} kills, {some.stopped} stops beyond "
            f"the lease, {reruns} further runs, store and service cut off, store lost: "
            f"{len(some.failures)} failed, {refused(control)} x 429",
            flush=True,
        )
        for error in sorted(set(some.errors())):
            print(f"  a run ended with: {error}", flush=True)
        missed = ["the run ended before the store was lost and the machines cut off"] * bool(steps)
        return missed + _problems(some, control, size.orders, most_refused=1)


def one_address(size: Size) -> list[str]:
    """All machines buy one address at the same moment."""
    with fleet(make("server", SERVER)) as (some, control, store):
        some.finish([Process(0, ["web"], store.url)], disturb=undisturbed, most_runs=1)
        (server,) = control("GET", "/objects")["servers"]
        before = charged(control)
        some.work = make("server_ip", {"server_id": str(server["id"])})
        # One declaration: what one of them has done, the others do not know.
        found = [Process(number, ["address"], store.url) for number in range(size.machines)]
        for process in found:
            some.start(process)
        for process in found:
            os.waitpid(process.pid, 0)
        bought = charged(control) - before
        print(f"one address: {size.machines} machines, {bought} charge", flush=True)
        return [f"{bought} charges: {some.errors()}"] * (bought != 1)


def one_budget(size: Size) -> list[str]:
    """All machines buy servers of their own under a budget for three."""
    with fleet(make("server", SERVER, budget="15.00/month")) as (some, control, store):
        found = [Process(number, [f"web-{number}"], store.url) for number in range(size.machines)]
        some.finish(found, disturb=undisturbed, most_runs=1)
        print(f"one budget: {size.machines} machines, {charged(control)} charges of 5.00", flush=True)
        wrong = {error for error in some.errors() if "budget is 15.00/month" not in error}
        return [f"{charged(control)} charges, 3 are within the budget: {wrong}"] * (
            charged(control) != 3 or bool(wrong)
        )


PARTS: dict[str, Callable[[Size], list[str]]] = {
    "speed": speed,
    "disturbed": disturbed,
    "address": one_address,
    "budget": one_budget,
    "relays": lambda size: two_relays(size.events),
}


def _processes(size: Size, url: str) -> list[Process]:
    found = [Process(number // size.processes, [], url) for number in range(size.machines * size.processes)]
    for number in range(size.orders):
        found[number % len(found)].names.append(f"web-{number}")
    return [process for process in found if process.names]


def _problems(some: Fleet, control: Control, orders: int, most_refused: int) -> list[str]:
    """What the account says of the orders."""
    problems, made = [*some.failures], servers(control)
    expected = {f"web-{number}" for number in range(orders)}
    if lost := expected - set(made):
        problems.append(f"lost: {sorted(lost)}")
    if doubles := {name for name, count in made.items() if count > 1}:
        problems.append(f"ordered twice: {sorted(doubles)}")
    if charged(control) != orders:
        problems.append(f"{charged(control)} charges for {orders} orders")
    if refused(control) > most_refused:
        problems.append(f"{refused(control)} x 429")
    return problems


def main(arguments: list[str]) -> int:
    """Exit 1 if a promise was broken, 2 without a server."""
    parser = argparse.ArgumentParser(prog="python -m tests.teams", description=__doc__)
    for name, value in vars(Size()).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", choices=[*PARTS], help="this part alone")
    given = vars(parser.parse_args(arguments))
    only = given.pop("only")
    if not IS_HERE:
        print("redis-server is not here", file=sys.stderr)
        return 2
    size, problems = Size(**given), list[str]()
    for name, part in PARTS.items():
        if only in (None, name):
            began = time.monotonic()
            wrong = part(Size(8) if name in ("address", "budget") else size)
            print(
                f"{name}: {json.dumps(wrong) if wrong else 'kept'}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
            problems += wrong
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
