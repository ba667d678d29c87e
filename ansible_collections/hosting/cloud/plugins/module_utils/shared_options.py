# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options that several modules have in common, and checks of a task's arguments that Ansible does not
make."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ansible.module_utils.common.parameters import env_fallback
from ansible.module_utils.errors import AnsibleFallbackNotFound

from .failures import unusable
from .json_types import Json, Values

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client.exceptions import ConfigurationError
    from pulumi_hosting.client.settings import API_KEY_SOURCES, key_of_environment


def from_environment(variable: str) -> Json:
    """The part of an option's specification that reads it from the environment where it is not given."""
    return {"fallback": (env_fallback, [variable])}


def api_key_of_environment() -> str | None:
    """The key that the process' environment holds, or names a file or a command for. None if there is
    none, or if it cannot be used: the client then looks again, and says why."""
    if unusable() is not None:
        return None
    with suppress(ConfigurationError):
        if (key := key_of_environment(os.environ)) is not None:
            return key.reveal()
    return None


def _api_key(variable: str) -> str:
    if (key := api_key_of_environment()) is None:
        raise AnsibleFallbackNotFound
    return key


CLIENT_OPTIONS: Json = {
    "api_key": {"type": "str", "no_log": True, "fallback": (_api_key, ["HOSTING_API_KEY"])},
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


def key_source_problem(environment: Values) -> str | None:
    """That a playbook says where the key is; None if it does not."""
    named = [name for name in API_KEY_SOURCES if environment.get(name)]
    if not named:
        return None
    return (
        f"{named[0]} is in the environment of the task or of its play, and is taken from the environment of "
        "ansible-playbook only. Next: export it there, and remove it from the playbook"
    )


def private_key_lines(params: Values) -> Iterable[str]:
    """The lines of private keys that were given by mistake. They must not be logged or printed."""
    for value in params.values():
        if isinstance(value, str) and "PRIVATE KEY" in value:
            yield value
            yield from filter(None, value.splitlines())


def for_display(params: Values) -> Json:
    """The parameters as results, differences and logs show them: the answers of ``custom_fields`` may be
    secrets."""
    answers = params.get("custom_fields")
    shown = {"custom_fields": dict.fromkeys(answers, "********")} if isinstance(answers, Mapping) else {}
    return {**params, **shown}


def without_unknown_items(params: Values) -> Json:
    """The parameters without empty items of lists: in check mode an earlier task's result may not be known
    yet."""
    return {
        name: [item for item in value if item not in (None, "")] if isinstance(value, list) else value
        for name, value in params.items()
    }
