"""Which key may touch what: live and test keys, and the scopes of a key."""

from collections.abc import Collection

from pulumi_hosting.client.client import Client
from pulumi_hosting.resources.base import AnyResource, State
from pulumi_hosting.resources.powers import recorded_mode, sandbox_of
from pulumi_hosting.session.errors import WrongMode
from pulumi_hosting.session.request import Request


def guard(request: Request, resource: AnyResource, state: State) -> None:
    """Stop before a test key changes what is real, or a live key anything that was only simulated. Raises
    ``ResourceError``.
    """
    refuse_other_mode(request.client, request.session.declared_mode)
    made = recorded_mode(resource, state)
    if made in (None, request.mode):
        return
    named = with_id(resource, state)
    if made == "live":
        raise WrongMode(
            f"{named} was made with a live key, and a test key may look at it but never change it; nothing "
            "was sent. Next: use the live key for changes, the test key for previews"
        )
    forget = request.client.words.forget
    raise WrongMode(
        f"{named} was only simulated, with a test key, and a live key must not touch it; nothing was sent. "
        f"Next: use the test key that made it{forget and f', or {forget}'}"
    )


def with_id(resource: AnyResource, state: State) -> str:
    """What a message calls an object: ``server web (id 7)``."""
    return " ".join(filter(None, (resource.title, getattr(state, "name", None), f"(id {state.id})")))


def refuse_other_mode(client: Client, declared: str | None) -> None:
    """Stop before a key of another mode than the ``declared`` one writes. Raises ``ResourceError``."""
    mode = "test" if client.is_test_key else "live"
    if declared not in (None, mode):
        raise WrongMode(
            f"the configuration says mode {declared}, and this is a {mode} key: it may look and preview, "
            f"and change nothing. Next: use a {declared} key"
        )


def missing_scopes(
    request: Request, resource: AnyResource, verb: str, spared: Collection[str] = ()
) -> str | None:
    """What the key lacks to ``create``, ``update`` or ``delete``, in a sentence; None if it lacks
    nothing. ``spared``: scopes that are not looked for.
    """
    if sandbox_of(resource) == "refused" and request.client.is_test_key:
        return None
    missing = sorted({*resource.scopes[verb]} - {*request.client.key_owner.get().scopes, *spared})
    an = "an" if resource.title.startswith("SSH") else "a"
    lacks = f"the API key lacks {', '.join(missing)}, needed to {verb} {an} {resource.title}"
    those = "that scope" if len(missing) == 1 else "these scopes"
    return f"{lacks}. Next: give it {those}, or use another key" if missing else None


def warn_of_scopes(request: Request, resource: AnyResource, verb: str) -> None:
    """Say in a dry run that the key could not do it."""
    if lacks := missing_scopes(request, resource, verb):
        request.warn(lacks)
