"""Quick imports for the processes of both providers: the engine starts one for each command."""

import gc
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import within without the garbage collector: imports leave no garbage, and looking for it among the
    objects of Pulumi's SDK takes a third of their time.
    """
    modules: MutableMapping[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None: not there
    # httpx would load its own command line, click and rich with it: as long as all the rest of httpx.
    modules.setdefault("httpx._main", None)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
