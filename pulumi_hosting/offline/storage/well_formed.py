"""Checks the structure of a deployment read from a file: it may have been edited and hold any JSON."""

from typing import get_type_hints

from ..model.property_values import Properties
from ..model.state import ResourceState
from .deployment_json import KEYS

_TYPES = {KEYS[name]: kind for name, kind in get_type_hints(ResourceState).items() if name in KEYS}


def problem_of(deployment: object) -> str | None:
    """What is wrong with a deployment, without its values; None when its structure is valid."""
    if not isinstance(deployment, dict):
        return "its deployment is no object"
    secrets = deployment.get("secrets_providers")
    if secrets is not None:
        state = secrets.get("state") if isinstance(secrets, dict) else []
        if not (state is None or isinstance(state, dict)) or not isinstance(
            (state or {}).get("salt", ""), str
        ):
            return "secrets_providers is not as Pulumi writes it"
    for key in ("resources", "pending_operations"):
        if not isinstance(deployment.get(key) or [], list):
            return f"{key} is no list"
    for number, item in enumerate(deployment.get("resources") or []):
        if problem := _resource(item):
            return f"resource {number}: {problem}"
    for number, item in enumerate(deployment.get("pending_operations") or []):
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return f"pending operation {number} has no type"
        if problem := _resource(item.get("resource")):
            return f"pending operation {number}: {problem}"
    return None


def _resource(item: object) -> str | None:
    if not isinstance(item, dict):
        return "no object"
    for key in ("urn", "type"):
        if not isinstance(item.get(key), str) or not item[key]:
            return f"{key} is missing"
    if not item["urn"].startswith("urn:pulumi:") or item["urn"].count("::") < 3:  # stack, project, type, name
        return "urn is no URN"
    wrong = [key for key, kind in _TYPES.items() if not _is(item.get(key), kind)]
    return f"{', '.join(wrong)} not as Pulumi writes it" if wrong else None


def _is(value: object, kind: object) -> bool:
    """Whether it is of the type of the field, or null, which stands for none."""
    if value is None or kind is object:
        return True
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if kind == dict[str, list[str]]:
        return isinstance(value, dict) and all(_is(urns, list[str]) for urns in value.values())
    if kind == dict[str, float]:
        return isinstance(value, dict) and all(type(seconds) in (int, float) for seconds in value.values())
    return isinstance(value, dict if kind == Properties else str if kind is str else bool)
