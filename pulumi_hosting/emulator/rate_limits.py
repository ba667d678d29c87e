"""How many calls are let through: fixed windows for the buckets, any stretch of time for what the document limits per stretch."""

from pulumi_hosting.emulator.messages import ApiError
from pulumi_hosting.emulator.store import Store


def hit(store: Store, name: str, limit: int, seconds: int, now: float) -> tuple[int, int, bool]:
    """Count one call in a window that begins with its first call: what remains, when it resets, whether this call is one too many."""
    window = store.windows.get(name)
    if window is None or now >= window[0] + seconds:
        window = store.windows[name] = [int(now), 0]
    over = window[1] >= limit
    if not over:
        window[1] += 1
    return limit - window[1], window[0] + seconds, over


def hit_within(store: Store, name: str, limit: int, seconds: int, now: float) -> tuple[float, bool]:
    """Count one call where at most ``limit`` may fall into any ``seconds``: when the next one may, whether this one is too many."""
    recent = [moment for moment in store.recent.get(name, ()) if moment > now - seconds]
    over = len(recent) >= limit
    if not over:
        recent.append(now)
    store.recent[name] = recent
    return recent[-limit] + seconds if len(recent) >= limit else now, over


def too_many(bucket: str, limit: int, reset: float, now: float, message: str = "") -> ApiError:
    return ApiError("rate_limited", message, details={"bucket": bucket, "limit": limit}, retry_after=max(1, -int((now - reset) // 1)))
