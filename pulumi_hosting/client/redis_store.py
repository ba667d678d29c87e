"""The shared store of several machines: Redis or Valkey, through the library ``redis``.

- A value is a string. One that changes often has a queue of writers: one script gives a writer its turn with
  the value, a change is computed here, and another script takes it and wakes the next writer. A writer that
  is killed or stopped holds no other up for longer than a turn; what it writes later is refused, since the
  value has another version by then.
- A lock is a lease of a minute, renewed by a thread four times as often. Whoever waits for one, or for a
  ticket of the rate limit, blocks on a list and is woken.
- A server that was started again may have lost leases in which their holders still believe. It is known by
  its run id, and gives no lock until all of them have ended.
- All times are the server's. The clocks of the machines need not be right.

Keys are hashes under ``hosting:``. Nothing secret is stored.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.shared_store import (
    Change,
    Files,
    SharedStore,
    StoreRefused,
    StoreUnavailable,
    held_leases,
)
from pulumi_hosting.installation import install_extras

if TYPE_CHECKING:
    from redis import Redis as Server

T = TypeVar("T")

LEASE_SECONDS = 60.0
MARGIN_SECONDS = 5.0
"""A write that is sent under a lease ends that long before it."""
_BEAT_SECONDS = LEASE_SECONDS / 4
_ANSWER_SECONDS = 5.0  # for which an answer of the server is waited for
_AGAIN_SECONDS = 5.0  # after which a server is asked again that gave none
_LONGEST_PAUSE = 1.0  # seconds in one question, so that a run that is cancelled notices it
_LONGEST_WAIT = 10.0  # seconds, should another waiter have been killed when it was woken
_TURN_MS = 500  # after which the turn of a writer that was killed or stopped is the next one's
_PREFIX = "hosting:"
_PROCESSES = f"{_PREFIX}processes"

_BEGIN = """
local turn, t = redis.call('GET', KEYS[3]), redis.call('TIME')
redis.call('ZADD', KEYS[2], t[1] + ARGV[2], ARGV[1])
redis.call('LREM', KEYS[4], 0, ARGV[3])
if turn and turn ~= ARGV[3] then
    redis.call('RPUSH', KEYS[4], ARGV[3])
    redis.call('EXPIRE', KEYS[4], 60)
    return {}
end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[4])
local found = redis.call('HMGET', KEYS[1], 'value', 'version')
return {found[1] or '', found[2] or '', t[1] .. '.' .. string.format('%06d', t[2])}
"""
_END = """
local writer, before, after = ARGV[1], ARGV[2], ARGV[3]
local is_taken = (redis.call('HGET', KEYS[1], 'version') or '') == before
if is_taken then
    redis.call('HSET', KEYS[1], 'value', after, 'version', writer)
    redis.call('EXPIRE', KEYS[1], 86400)
    for number = 4, #KEYS do
        redis.call('RPUSH', KEYS[number], 1)
        redis.call('EXPIRE', KEYS[number], 60)
    end
end
if (redis.call('GET', KEYS[2]) or writer) == writer then
    local following = redis.call('LPOP', KEYS[3])
    if following then
        redis.call('SET', KEYS[2], following, 'PX', ARGV[4])
        redis.call('RPUSH', KEYS[3] .. following, 1)
        redis.call('EXPIRE', KEYS[3] .. following, 60)
    else
        redis.call('DEL', KEYS[2])
    end
end
return is_taken and 1 or 0
"""
_TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return math.max(1, redis.call('PTTL', KEYS[1])) end
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or 'unknown'
local t, known = redis.call('TIME'), redis.call('HMGET', KEYS[2], 'run', 'since')
if known[1] ~= run then
    known[2] = t[1]
    redis.call('HSET', KEYS[2], 'run', run, 'since', t[1])
end
local young = known[2] + ARGV[2] / 1000 - t[1]
if not holder and young > 0 then return -math.ceil(1000 * young) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 0
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
if redis.call('LLEN', KEYS[2]) == 0 then redis.call('RPUSH', KEYS[2], 1) end
redis.call('EXPIRE', KEYS[2], 60)
"""
_BEAT = """
redis.call('ZADD', KEYS[1], redis.call('TIME')[1] + ARGV[2] / 1000, ARGV[1])
local kept = {}
for number = 2, #KEYS do
    kept[number - 1] = 0
    if redis.call('GET', KEYS[number]) == ARGV[number + 1] then
        kept[number - 1] = redis.call('PEXPIRE', KEYS[number], ARGV[2])
    end
end
return kept
"""
_LIVING = """
local now = redis.call('TIME')[1]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. now)
return redis.call('ZRANGE', KEYS[1], 0, -1)
"""


def elapsed() -> float:
    """Seconds, also those in which the process was stopped or the machine slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class HeldLease:
    """A lock that this process holds until ``until``, unless it is renewed."""

    def __init__(self, key: str) -> None:
        self.key, self.token, self.until = key, uuid4().hex, float("-inf")

    def left(self) -> float:
        return self.until - elapsed() - MARGIN_SECONDS


class Redis(SharedStore):
    """``url``: of the server. ``server``: a connection to it, in place of one that is made."""

    where: ClassVar[str] = "that shares this store"
    wakes: ClassVar[bool] = True
    spans_machines: ClassVar[bool] = True
    held_for: ClassVar[float] = LEASE_SECONDS

    def __init__(self, url: Secret, server: "Server | None" = None) -> None:
        import redis  # loaded by those who share a store

        self._failures = (redis.RedisError, OSError)
        self._refusals = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
        parts = urlsplit(url.reveal())
        self._address = f"{parts.scheme}://{parts.hostname}:{parts.port or 6379}"
        self._secret = Secret(unquote(parts.password or ""))
        self._server = server or redis.Redis.from_url(
            url.reveal(),
            socket_timeout=_ANSWER_SECONDS,
            socket_connect_timeout=_ANSWER_SECONDS,
            # once, after a connection that the server has closed meanwhile
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 1, (redis.ConnectionError,)),
        )
        self._silent_until, self._reason = float("-inf"), ""
        self._failure: type[StoreUnavailable] = StoreUnavailable
        self._pid, self._process = 0, 0
        self._leases: set[HeldLease] = set()
        self._starting = threading.Lock()

    # --- the processes, and what they hold

    @property
    def process(self) -> int:
        if self._pid != os.getpid():
            with self._starting:
                if self._pid != os.getpid():
                    self._process = int.from_bytes(os.urandom(6), "big")
                    self._leases, self._pid = set(), os.getpid()
                    self.beat()
                    threading.Thread(target=_keep_beating, args=(weakref.ref(self),), daemon=True).start()
        return self._process

    def living(self) -> Callable[[int], bool]:
        found = self.run(_LIVING, [_PROCESSES], [])
        alive = {int(number) for number in found}
        return lambda number: number in alive

    def beat(self) -> None:
        """Renew what this process holds, and that it lives."""
        leases, asked = [*self._leases], elapsed()
        keys = [_PROCESSES, *(lease.key for lease in leases)]
        with suppress(StoreUnavailable):
            tokens = [lease.token for lease in leases]
            kept = self.run(_BEAT, keys, [self._process, int(LEASE_SECONDS * 1000), *tokens])
            for lease, is_kept in zip(leases, kept, strict=True):
                lease.until = asked + LEASE_SECONDS if is_kept else float("-inf")

    # --- values

    def read(self, name: str) -> bytes | None:
        found = self._ask(lambda: self._server.get(_PREFIX + name))
        return found if isinstance(found, bytes) else None

    def write(self, name: str, data: bytes, *, survives: bool = False) -> None:
        self._ask(lambda: self._server.set(_PREFIX + name, data))

    def forget(self, name: str) -> None:
        self._ask(lambda: self._server.delete(_PREFIX + name))

    def names(self, pattern: str) -> list[str]:
        found = self._ask(lambda: [*self._server.scan_iter(match=_PREFIX + pattern, count=1000)])
        return [key.decode().removeprefix(_PREFIX) for key in found]

    def open(self, name: str, what: str) -> "OpenEntry":
        return OpenEntry(self, name)

    def damaged(self, name: str) -> LocalFilesError:
        return LocalFilesError(
            f"the entry {_PREFIX}{name} of the shared store {self._address} is damaged. Next: delete it and "
            "run again"
        )

    # --- locks

    @contextmanager
    def attempts(self, name: str) -> Iterator[Callable[[], float]]:
        lease, token = HeldLease(f"{_PREFIX}{name}.lock"), None

        def take() -> float:
            nonlocal token
            _, asked = self.process, elapsed()
            keys = [lease.key, f"{_PREFIX}server"]
            wait = int(self.run(_TAKE, keys, [lease.token, int(LEASE_SECONDS * 1000)])[0])
            if wait:
                return max(0.001, min(_LONGEST_WAIT, abs(wait) / 1000))
            lease.until = asked + LEASE_SECONDS
            self._leases.add(lease)
            token = held_leases.set((*held_leases.get(), lease))
            return 0.0

        try:
            yield take
        finally:
            if token is not None:
                held_leases.reset(token)
                self._leases.discard(lease)
                with suppress(StoreUnavailable):  # it ends without that
                    self.run(_RELEASE, [lease.key, f"{lease.key}.woken"], [lease.token])

    def pause(self, name: str, seconds: float) -> bool:
        seconds = max(0.01, min(seconds, _LONGEST_PAUSE))  # 0 would be without end
        return self.is_woken(f"{_PREFIX}{name}.woken", seconds)

    def is_woken(self, key: str, seconds: float) -> bool:
        """Wait for that long, or until something is put on this list. Whether it was."""
        return self._ask(lambda: self._server.blpop([key], seconds)) is not None

    # --- the server

    def run(self, script: str, keys: list[str], values: list[str | int | float | bytes]) -> list[bytes]:
        """What a script returns, as a list."""
        found = self._ask(lambda: self._server.register_script(script)(keys, values))
        return found if isinstance(found, list) else [found]

    def _ask(self, question: Callable[[], T]) -> T:
        """What the server answers. Raises ``StoreUnavailable``; for some seconds after that, at once."""
        if elapsed() >= self._silent_until:
            try:
                return question()
            except self._failures as error:
                self._silent_until = elapsed() + _AGAIN_SECONDS
                self._failure = StoreRefused if isinstance(error, self._refusals) else StoreUnavailable
                self._reason = " ".join(str(error).split())[:200].rstrip(".")
                if secret := self._secret.reveal():
                    self._reason = self._reason.replace(secret, "…")
        raise self._failure(
            f"the shared store {self._address} cannot be used: {self._reason}; nothing was sent. "
            "Next: see that it runs, can be reached and takes this user and password, then run again"
        )


class OpenEntry:
    """A value with a version."""

    def __init__(self, store: Redis, name: str) -> None:
        self._store, self._key = store, _PREFIX + name
        self._of_turn, self._queue = f"{self._key}.turn", f"{self._key}.queue"
        self._threads, self._pid = threading.Lock(), os.getpid()

    def update(self, change: Change[T], now: float) -> T:
        if self._pid != os.getpid():  # a thread of the parent may have held it
            self._threads, self._pid = threading.Lock(), os.getpid()
        writer = uuid4().hex
        with self._threads:
            while True:
                before, version, at = self._turn(writer)
                after, result, woken = change(before, float(at))
                keys = [self._key, self._of_turn, self._queue, *(f"{_PREFIX}{name}.woken" for name in woken)]
                if int(self._store.run(_END, keys, [writer, version, after, _TURN_MS])[0]):
                    return result

    def _turn(self, writer: str) -> list[bytes]:
        """Wait for the turn of this writer: value, version and time."""
        store, keys = self._store, [self._key, _PROCESSES, self._of_turn, self._queue]
        while not (found := store.run(_BEGIN, keys, [store.process, LEASE_SECONDS, writer, _TURN_MS])):
            store.is_woken(self._queue + writer, _TURN_MS / 1000)
        return found

    def close(self) -> None:
        """The connections are the store's."""


def _keep_beating(found: "weakref.ref[Redis]") -> None:
    while True:
        time.sleep(_BEAT_SECONDS)
        store = found()
        if store is None:
            return
        store.beat()
        del store


_stores: dict[Secret, Redis] = {}


def store_at(url: Secret | None) -> SharedStore:
    """The one of this process at this address; without one, the files of this machine. Raises
    ``ConfigurationError``."""
    if url is None:
        return Files()
    if url in _stores:
        return _stores[url]
    try:
        return _stores.setdefault(url, Redis(url))
    except ImportError:
        problem = f"needs the library redis. Next: {install_extras('redis')}"
    except ValueError:
        problem = (
            "is not a URL of a Redis server (it is not shown here). Next: correct HOSTING_STORE or store"
        )
    raise ConfigurationError(f"the shared store {problem}")
