"""Fixed windows of calls."""

from pulumi_hosting.emulator.wire import Refusal
from pulumi_hosting.emulator.world import World


def hit(world: World, name: str, limit: int, seconds: int, now: float) -> tuple[int, int, bool]:
    """Count one call in a window that begins with its first call: what remains, when it resets, whether this call is one too many."""
    window = world.windows.get(name)
    if window is None or now >= window[0] + seconds:
        window = world.windows[name] = [int(now), 0]
    over = window[1] >= limit
    if not over:
        window[1] += 1
    return limit - window[1], window[0] + seconds, over


def too_many(bucket: str, limit: int, reset: int, now: float, message: str = "") -> Refusal:
    return Refusal("rate_limited", message, details={"bucket": bucket, "limit": limit}, retry_after=max(1, -int((now - reset) // 1)))
