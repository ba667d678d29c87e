"""What a key may not do, by resource of Pulumi and by module of Ansible."""

from collections.abc import Collection, Iterator

from pulumi_hosting.api.operations import BY_ID, SCOPES
from pulumi_hosting.provider.names import class_of
from pulumi_hosting.reports.checks import Check, check, ok, warning
from pulumi_hosting.reports.module_scopes import MODULES
from pulumi_hosting.resources import RESOURCES

VERBS = ("read", "create", "update", "delete")
_UNUSED_BY_TEST_KEYS = frozenset(SCOPES) - {
    scope for row in BY_ID.values() if row.sandbox != "forbidden" for scope in row.scopes
}


@check("scopes")
def scopes_check(held: Collection[str], *, is_test_key: bool) -> Check:
    """A line for each resource and module that lacks a scope."""
    held = {*held, *(_UNUSED_BY_TEST_KEYS if is_test_key else ())}
    missing = [scope for scope in SCOPES if scope not in held]
    operations = {row.id: [*row.scopes] for row in BY_ID.values() if not {*row.scopes} <= {*held}}
    facts = {"missing": missing, "operations": operations}
    if not missing:
        return ok("the key has all that it can use", **facts)
    step = "give it those that are needed, in the control panel; for looking alone read scopes are enough"
    details = (*_resources(held), *_modules(held))
    return warning(f"the key lacks {', '.join(missing)}", step, details, **facts)


def _resources(held: Collection[str]) -> Iterator[str]:
    for kind, resource in RESOURCES.items():
        lacking: dict[tuple[str, ...], list[str]] = {}
        for verb in VERBS:
            needed = tuple(scope for scope in resource.scopes[verb] if scope not in held)
            if needed:
                lacking.setdefault(needed, []).append(verb)
        if lacking:
            each = "; ".join(
                f"{', '.join(needed)} to {', '.join(verbs)}" for needed, verbs in lacking.items()
            )
            yield f"resource {class_of(kind)} lacks {each}"


def _modules(held: Collection[str]) -> Iterator[str]:
    for name, scopes in MODULES.items():
        if needed := [scope for scope in scopes if scope not in held]:
            yield f"module hosting.cloud.{name} lacks {', '.join(needed)}"
