"""The events of several receivers in the shared store: each is kept until it is acknowledged, and its id is
remembered after that.

Any of them takes a delivery. One at a time hands events over, under a lease: the first pending one is the
same for all, so that the order of arrival holds. If that one is killed, another goes on when the lease ends.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import ClassVar

from pulumi_hosting.client.redis_store import Redis
from pulumi_hosting.client.shared_store import LeaseLost, time_to_write
from pulumi_hosting.webhooks.delivery_store import MAX_PENDING, REMEMBER_SECONDS, StoredEvent, StoreFull

_OPEN = """
redis.call('HSETNX', KEYS[4], 'since', redis.call('TIME')[1])
return redis.call('HGET', KEYS[4], 'since')
"""
# A number is the microsecond of the arrival, so that it also grows if the store was started again, empty.
_ADD = """
local t, known = redis.call('TIME'), redis.call('ZSCORE', KEYS[3], ARGV[1])
local pending = redis.call('ZCARD', KEYS[1])
if not known and pending >= tonumber(ARGV[3]) then return -pending end
redis.call('ZADD', KEYS[3], t[1], ARGV[1])
if known then return 0 end
local last = tonumber(redis.call('HGET', KEYS[4], 'last') or 0)
local number = string.format('%.0f', math.max(last + 1, t[1] * 1000000 + t[2]))
redis.call('HSET', KEYS[4], 'last', number)
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[1], number, ARGV[1])
return 1
"""
_KNOWS = "return redis.call('ZSCORE', KEYS[3], ARGV[1]) and 1 or 0"
_NEXT = """
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
if found[1] then found[3] = redis.call('HGET', KEYS[2], found[1]) end
return found
"""
_ACKNOWLEDGE = "redis.call('ZREM', KEYS[1], ARGV[1]) redis.call('HDEL', KEYS[2], ARGV[1])"
_FORGET = """
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. redis.call('TIME')[1] - ARGV[1])) do
    if not redis.call('ZSCORE', KEYS[1], id) then redis.call('ZREM', KEYS[3], id) end
end
"""


class SharedEventStore:
    """As :class:`~pulumi_hosting.webhooks.delivery_store.EventStore`. When a method returns, its change is in
    the shared store. The clock is that of the store.

    ``to``: where the events go. Receivers with the same one share a queue. To be used by one thread, which
    holds the lease. Methods raise ``StoreUnavailable``.
    """

    poll_seconds: ClassVar[float | None] = 1.0

    def __init__(self, redis: Redis, to: str, *, max_pending: int = MAX_PENDING) -> None:
        self._redis, self._max_pending = redis, max_pending
        self._name = f"relay.{hashlib.sha256(to.encode()).hexdigest()[:16]}"
        self._turn, self._has_turn = ExitStack(), False
        self._end_turn()
        self.created_at = float(self._run(_OPEN)[0])

    def close(self) -> None:
        self._turn.close()

    def add(self, id: str, body: bytes, headers: Mapping[str, str], via: str) -> bool:
        about = json.dumps([json.dumps(dict(headers)), via]).encode()
        answer = int(self._run(_ADD, id, about + b"\n" + body, self._max_pending)[0])
        if answer < 0:
            raise StoreFull(f"{-answer} events are pending")
        return answer == 1

    def knows(self, id: str) -> bool:
        return int(self._run(_KNOWS, id)[0]) == 1

    def next_pending(self, after: int) -> StoredEvent | None:
        """None also while another receiver hands events over."""
        if not self._is_our_turn() or not (found := self._run(_NEXT, after)):
            return None
        if found[2:] in ([], [None]):
            raise self._redis.damaged(f"{self._name}.pending")
        (id, number), (about, _, body) = found[:2], found[2].partition(b"\n")
        headers, via = json.loads(about)
        return StoredEvent(int(float(number)), id.decode(), body, headers, via, float(number) / 1e6)

    def acknowledge(self, id: str) -> None:
        self._run(_ACKNOWLEDGE, id)

    def forget_old(self) -> None:
        self._run(_FORGET, REMEMBER_SECONDS)

    def _is_our_turn(self) -> bool:
        if self._has_turn:
            with suppress(LeaseLost):
                time_to_write(0.0)
                return True
            self._end_turn()
        self._has_turn = self._take() == 0.0
        return self._has_turn

    def _end_turn(self) -> None:
        self._turn.close()
        self._take, self._has_turn = self._turn.enter_context(self._redis.attempts(self._name)), False

    def _run(self, script: str, *values: str | int | bytes) -> list[bytes]:
        keys = [f"hosting:{self._name}.{part}" for part in ("pending", "bodies", "known", "about")]
        return self._redis.run(script, keys, [*values])
