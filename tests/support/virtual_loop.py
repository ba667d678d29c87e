"""An event loop whose time passes only when nothing is left to do."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its timers end at once, in their order. It has a default executor of ``threads`` threads, for which it
    waits in real time."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.now, self._jobs = 1000.0, 0
        self.set_default_executor(ThreadPoolExecutor(threads))
        selector: Any = self._selector  # type: ignore[attr-defined]  # of asyncio: no public name
        select = selector.select

        def virtual(timeout: float | None) -> Any:
            if self._jobs or not timeout:
                return select(timeout if self._jobs == 0 or timeout == 0 else None)
            self.now += timeout
            return select(0)

        selector.select = virtual

    def time(self) -> float:
        return self.now

    def run_in_executor(  # type: ignore[override]  # a TypeVarTuple says no more here
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        self._jobs += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: setattr(self, "_jobs", self._jobs - 1))
        return future
