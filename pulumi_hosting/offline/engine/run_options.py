"""Options of an operation."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..generator.decisions import Mode
from ..model.goals import Goal

Command = Literal["up", "preview", "refresh", "destroy", "import"]


@dataclass(frozen=True)
class Options:
    """A command and its options. Each is the command line's option of the same name."""

    command: Command
    preview_only: bool = False
    refresh: bool = False
    """Refresh before (without a program) or while the program runs."""
    run_program: bool = False
    """False: refresh and destroy use the state alone."""
    expect_no_changes: bool = False
    clear_pending_creates: bool = False
    targets: tuple[str, ...] = ()
    target_dependents: bool = False
    replaces: tuple[str, ...] = ()
    parallel: int | None = None
    event_log: Path | None = None
    diff: bool = False
    plugin_arguments: tuple[str, ...] = ()
    import_goal: Goal | None = None
    """The resource to import, and nothing else, for the command `import`."""

    @property
    def at_a_time(self) -> int:
        """How many resources are worked on at a time."""
        return self.parallel or 4 * (os.cpu_count() or 1)

    @property
    def preview(self) -> bool:
        return self.preview_only or self.command == "preview"

    @property
    def mode(self) -> Mode:
        """What is done with a resource that the program registers."""
        if self.command == "refresh" or (self.command == "destroy" and self.run_program):
            return self.command
        return "update"
