"""Checks the structure of a deployment read from a file: it may have been edited and hold any JSON."""

from typing import Any

_TEXTS = ("id", "parent", "provider", "importID", "deletedWith", "created", "modified", "sourcePosition")
_FLAGS = (
    "custom",
    "delete",
    "protect",
    "taint",
    "external",
    "pendingReplacement",
    "retainOnDelete",
    "refreshBeforeUpdate",
)
_LISTS = (
    "dependencies",
    "initErrors",
    "additionalSecretOutputs",
    "aliases",
    "replaceWith",
    "ignoreChanges",
    "hideDiff",
    "replaceOnChanges",
)


def problem_of(deployment: Any) -> str | None:
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


def _resource(item: Any) -> str | None:
    if not isinstance(item, dict):
        return "no object"
    for key in ("urn", "type"):
        if not isinstance(item.get(key), str) or not item[key]:
            return f"{key} is missing"
    if not item["urn"].startswith("urn:pulumi:") or item["urn"].count("::") < 3:  # stack, project, type, name
        return "urn is no URN"
    wrong = [key for key in _TEXTS if not isinstance(_given(item, key, ""), str)]
    wrong += [key for key in _FLAGS if not isinstance(_given(item, key, False), bool)]
    wrong += [key for key in _LISTS if not _is_texts(_given(item, key, []))]
    wrong += [key for key in ("inputs", "outputs") if not isinstance(_given(item, key, {}), dict)]
    dependencies, timeouts = _given(item, "propertyDependencies", {}), _given(item, "customTimeouts", {})
    if not isinstance(dependencies, dict) or not all(
        urns is None or _is_texts(urns) for urns in dependencies.values()
    ):
        wrong.append("propertyDependencies")
    if not isinstance(timeouts, dict) or not all(
        type(seconds) in (int, float) for seconds in timeouts.values()
    ):
        wrong.append("customTimeouts")
    return f"{', '.join(wrong)} not as Pulumi writes it" if wrong else None


def _given(item: dict[str, Any], key: str, default: Any) -> Any:
    value = item.get(key)
    return default if value is None else value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
