# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that several modules have in common, and checks of a task's arguments that Ansible does not
make."""

from __future__ import annotations

from collections.abc import Iterable

from ansible.module_utils.common.parameters import env_fallback

from .json_types import Json, Values


def from_environment(variable: str) -> Json:
    """The part of an option's specification that reads it from the environment where it is not given."""
    return {"fallback": (env_fallback, [variable])}


CLIENT_OPTIONS: Json = {
    "api_key": {"type": "str", "no_log": True, **from_environment("HOSTING_API_KEY")},
    "base_url": {"type": "str", **from_environment("HOSTING_BASE_URL")},
    "timeout": {"type": "float", "default": 30},
    "rate_limit_timeout": {"type": "float", "default": 600},
    "store": {"type": "str", "no_log": True, **from_environment("HOSTING_STORE")},
    # Unused by modules that only read. They accept both, so that a play can set them for the whole action
    # group.
    "mode": {"type": "str", "choices": ["live", "test"], **from_environment("HOSTING_MODE")},
    "max_charge": {"type": "str", **from_environment("HOSTING_MAX_CHARGE")},
    "budget": {"type": "str", **from_environment("HOSTING_BUDGET")},
}
WAIT_OPTIONS: Json = {
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "float", "default": 600},
}
STATE_OPTION: Json = {"type": "str", "choices": ["present", "absent"], "default": "present"}


def boolean_problem(spec: Values, given: Values) -> str | None:
    """Which option was given a boolean where text or a number is needed; None if none was.

    YAML reads an unquoted ``no`` or ``on`` as a boolean.
    """
    for name, value in given.items():
        values = value if isinstance(value, list) else [value]
        needed = spec.get(name, {}).get("elements" if isinstance(value, list) else "type")
        if needed in ("str", "int", "float") and any(isinstance(item, bool) for item in values):
            kind = "text" if needed == "str" else "a number"
            return f"{name}: must be {kind}, not a boolean. Next: put it in quotes, or correct it"
    return None


def private_key_lines(params: Values) -> Iterable[str]:
    """The lines of private keys that were given by mistake. They must not be logged or printed."""
    for value in params.values():
        if isinstance(value, str) and "PRIVATE KEY" in value:
            yield value
            yield from filter(None, value.splitlines())


def without_unknown_items(params: Values) -> Json:
    """The parameters without empty items of lists: in check mode an earlier task's result may not be known
    yet."""
    return {
        name: [item for item in value if item not in (None, "")] if isinstance(value, list) else value
        for name, value in params.items()
    }
