"""A stack of a project, and the operations on it. The command line calls these methods."""

from collections.abc import Callable, Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any

from .display.engine_events import Listener
from .engine.run_options import Command, Options
from .model.goals import Goal
from .stack_operation import StackOperation, StackResult
from .storage.stack_store import StackStore


class OfflineStack(StackStore):
    """One stack. `write` takes each line of the display; None displays nothing.

    `listeners` get every engine event.
    """

    def __init__(
        self,
        cwd: str | Path,
        name: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        write: Callable[[str], None] | None = None,
        listeners: tuple[Listener, ...] = (),
    ) -> None:
        super().__init__(cwd, name, environ=environ)
        self._write = write
        self._listeners = listeners

    def run(self, command: Command, **options: Any) -> StackResult:
        """Run one operation; `options` are those of `Options`.

        Raises `OfflineError` for mistakes of the caller only.
        """
        return StackOperation(self, Options(command, **options), self._write, self._listeners).run()

    up: partialmethod[StackResult] = partialmethod(run, "up")
    preview: partialmethod[StackResult] = partialmethod(run, "preview")
    refresh: partialmethod[StackResult] = partialmethod(run, "refresh")
    destroy: partialmethod[StackResult] = partialmethod(run, "destroy")

    def import_resource(
        self, type: str, name: str, id: str, *, protect: bool = True, preview: bool = True, **options: Any
    ) -> StackResult:
        """Take an existing object under management, as `import TYPE NAME ID` does: preview, then write to the
        state.
        """
        goal = Goal(type, name, custom=True, import_id=id, protect=protect)
        if preview:
            result = self.run("import", preview_only=True, import_goal=goal, **options)
            if result.exit_code:
                return result
        return self.run("import", import_goal=goal, **options)
