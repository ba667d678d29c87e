"""Options of an operation, as the engine uses them."""

from dataclasses import dataclass, field

from ..generator.decisions import Mode
from ..model.goals import Goal, Targets


@dataclass(frozen=True)
class Options:
    preview: bool = False
    parallel: int = 16
    refresh: bool = False
    """Refresh before (without a program) or while the program runs."""
    refresh_only: bool = False
    run_program: bool = True
    """False: refresh and destroy use the state alone."""
    mode: Mode = "update"
    targets: Targets = field(default_factory=Targets)
    target_dependents: bool = False
    import_goal: Goal | None = None
    """A resource to import, and nothing else."""
