"""Rate limits: fixed windows for the buckets, sliding windows for limits such as 5 in any 5 minutes."""

from pulumi_hosting.emulator.messages import Refusal
from pulumi_hosting.emulator.store import Store


def hit(store: Store, name: str, limit: int, seconds: int) -> tuple[int, int, bool]:
    """Count a call in a window that starts with its first call: calls left, reset time, limit exceeded."""
    window = store.windows.get(name)
    now = store.now
    if window is None or now >= window[0] + seconds:
        window = store.windows[name] = [int(now), 0]
    over = window[1] >= limit
    if not over:
        window[1] += 1
    return limit - window[1], window[0] + seconds, over


def hit_within(store: Store, name: str, limit: int, seconds: int) -> tuple[float, bool]:
    """Count a call if fewer than ``limit`` fell into the last ``seconds``: time of the next, limit
    exceeded.
    """
    recent = [moment for moment in store.recent.get(name, ()) if moment > store.now - seconds]
    over = len(recent) >= limit
    if not over:
        recent.append(store.now)
    store.recent[name] = recent
    return recent[-limit] + seconds if len(recent) >= limit else store.now, over


def too_many(store: Store, bucket: str, limit: int, reset: float, message: str = "") -> Refusal:
    return Refusal(
        "rate_limited",
        message,
        details={"bucket": bucket, "limit": limit},
        retry_after=max(1, -int((store.now - reset) // 1)),
    )
