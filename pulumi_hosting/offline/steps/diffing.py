"""Compares the desired inputs of a resource with its state."""

from collections.abc import Iterable

from ..model.paths import parse_path, reset_path
from ..model.property_values import Properties
from ..model.state import ResourceState
from ..providers.interface import ResourceProvider
from ..providers.provider_results import ProviderDiff, diff_of_inputs


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
    provider: ResourceProvider,
    state: ResourceState,
    news: Properties,
    ignore: Iterable[str],
    *,
    preview: bool,
) -> ProviderDiff:
    """The provider's diff; the engine's comparison of the inputs where the provider leaves it to the
    engine.
    """
    ignore = list(ignore)
    diff = provider.diff(state.urn, state.id, state.inputs, state.outputs, news, ignore, preview=preview)
    if diff.changes != "unknown":
        return diff
    own = diff_of_inputs(state.inputs, ignoring(news, state.inputs, ignore)[0])
    return ProviderDiff(
        own.changes, diff.replaces, own.diffs, own.detailed, diff.delete_before_replace, diff.stables
    )
