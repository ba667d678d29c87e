"""Two relays behind a proxy, with one queue: real processes, which are killed."""

import os
import subprocess
import sys
import time
from contextlib import suppress

import httpx

from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.teams.servers import RedisServer
from tests.webhooks.support import SECRET, Downstream, body, signed

KILLS = 4
LEASE = 2.0
"""Seconds."""
_PROGRAM = f"""
from pulumi_hosting.client import redis_store
redis_store.LEASE_SECONDS, redis_store.MARGIN_SECONDS, redis_store._BEAT_SECONDS = {LEASE}, 0.2, {LEASE / 4}
from pulumi_hosting.cli import main
main()
"""


class RelayProcess:
    """A relay that is started again on the same port."""

    def __init__(self, to: str, store: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        self._command = [sys.executable, "-c", _PROGRAM, "webhook", "relay", "--to", to, "--port", str(port)]
        self._environ = {**os.environ, "HOSTING_WEBHOOK_SECRET": SECRET, "HOSTING_STORE": store}
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, env=self._environ, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def two_relays(events: int) -> list[str]:
    """Deliver each event until it was answered with 200, to either relay, as the service does. The relays are
    killed in turn, whichever hands events over, and started again.
    """
    ids, store, began = [f"evt_{number}" for number in range(events)], RedisServer(), time.monotonic()
    with Downstream() as downstream, httpx.Client() as http:
        relays = [RelayProcess(downstream.url, store.url) for _ in range(2)]
        try:
            for number, id in enumerate(ids):
                kill, is_time = divmod(number, events // (KILLS + 1))
                if is_time == 0 and kill > 0:
                    relays[kill % 2].kill()
                    relays[kill % 2].start()
                _deliver(http, id, [relays[number % 2].url, relays[(number + 1) % 2].url])
            with suppress(AssertionError, TimeoutError):  # what is lost is counted
                wait_until(lambda: set(downstream.ids) == set(ids))
        finally:
            for relay in relays:
                relay.kill()
            store.stop()
    arrived = [*dict.fromkeys(downstream.ids)]
    print(
        f"relays: {events} events to 2 relays in {time.monotonic() - began:.0f} s, {KILLS} kills: "
        f"{len(set(ids) - set(arrived))} lost, {len(downstream.ids) - len(arrived)} sent twice",
        flush=True,
    )
    if lost := set(ids) - set(arrived):
        return [f"lost: {sorted(lost)[:20]}"]
    return ["passed on in another order"] * (arrived != ids)


def _deliver(http: httpx.Client, id: str, urls: list[str]) -> None:
    raw, until = body(id), time.monotonic() + 120
    while time.monotonic() < until:
        for url in urls:
            with suppress(httpx.HTTPError):
                if http.post(url, content=raw, headers=signed(raw)).status_code == 200:
                    return
    raise TimeoutError(f"no relay took {id}")
