"""Compares the desired inputs of a resource with its state."""

from collections.abc import Iterable

from ..model.paths import parse_path, reset_path
from ..model.state import State
from ..model.values import Properties
from ..providers.interface import ResourceProvider
from ..providers.results import Diff, diff_of_inputs


def ignoring(inputs: Properties, old: Properties, paths: Iterable[str]) -> tuple[Properties, list[str]]:
    """Inputs with every ignored path put back to its old value, and the paths where that could not be done."""
    failed = []
    for path in paths:
        try:
            inputs, done = reset_path(parse_path(path), old, inputs)
        except ValueError:
            continue
        if not done:
            failed.append(path)
    return inputs, failed


def diff_resource(provider: ResourceProvider, state: State, news: Properties, ignore: Iterable[str], *, preview: bool) -> Diff:
    """The provider's opinion of a change; the engine's own comparison of inputs where it has none."""
    ignore = list(ignore)
    diff = provider.diff(state.urn, state.id, state.inputs, state.outputs, news, ignore, preview=preview)
    if diff.changes != "unknown":
        return diff
    own = diff_of_inputs(state.inputs, ignoring(news, state.inputs, ignore)[0])
    return Diff(own.changes, diff.replaces, own.diffs, own.detailed, diff.delete_before_replace, diff.stables)
