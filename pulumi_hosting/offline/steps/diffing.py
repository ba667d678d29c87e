"""Compares the declared inputs of a resource with its state."""

from collections.abc import Iterable
from dataclasses import replace

from ..model.paths import parse_path, reset_path
from ..model.property_values import Properties
from ..model.provider_results import ProviderDiff, diff_of_inputs
from ..model.state import ResourceState
from ..providers.registry import ResourceProvider


def ignoring(inputs: Properties, old: Properties, paths: Iterable[str]) -> tuple[Properties, list[str]]:
    """Inputs with every ignored path reset to its old value, and the paths that could not be reset."""
    failed = []
    for path in paths:
        try:
            inputs, done = reset_path(parse_path(path), old, inputs)
        except ValueError:
            continue
        if not done:
            failed.append(path)
    return inputs, failed


def diff_resource(
    provider: ResourceProvider, old: ResourceState, news: Properties, ignore: list[str], *, preview: bool
) -> ProviderDiff:
    """The provider's diff; the engine's comparison of the inputs if the provider leaves it to the
    engine.
    """
    diff = provider.diff(old, news, ignore, preview=preview)
    if diff.changes != "unknown":
        return diff
    own = diff_of_inputs(old.inputs, ignoring(news, old.inputs, ignore)[0])
    return replace(diff, changes=own.changes, diffs=own.diffs, detailed=own.detailed)
