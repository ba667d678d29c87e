"""Operations restricted to targets: what is left as it is."""

from ..model.state import ResourceState
from ..steps.base import Step
from ..steps.changes import SameStep
from ..steps.operations import SAME
from .decisions import Decision, Decisions


def leave_untargeted(decisions: Decisions, old: ResourceState, new: ResourceState) -> Decision:
    """Keep a resource as it is, and everything it depends on that the program no longer declares."""
    steps: list[Step] = []

    def keep(state: ResourceState) -> ResourceState:
        decisions.names.taken.add(state.urn)
        decisions.outcomes.add("same", new.urn, state.urn)
        for urn in state.needed_urns():
            if not decisions.is_done(urn) and urn in decisions.operation.olds:
                keep(decisions.operation.olds[urn])
        kept = state.copy(id="")
        if not state.delete:
            steps.append(SameStep(SAME, state, kept, untargeted=True))
        return kept

    kept = keep(old)
    return Decision(steps, lambda: kept)
