# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where Ansible and the core meet, and only here.

A module declares its options; everything else follows one way: the options a task wrote become a declaration, the core's engine finds,
plans and applies, and its outcome becomes the result. Errors of any kind become one line and facts. What a noun is, what it costs to
change and what must be waited for is known to the core alone.

The core is imported inside functions: the modules' documentation and options must be readable where it is not installed.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ansible.module_utils.basic import AnsibleModule, env_fallback, missing_required_lib

if TYPE_CHECKING:
    from pulumi_hosting.resources.base import Context, Noun
    from pulumi_hosting.resources.engine import Outcome

VERSION = "0.1.0"
CORE = "0.1.0"
"""The oldest core that these modules work with."""
PYTHON = (3, 11)

CLIENT_OPTIONS: dict[str, Any] = {
    "api_key": {"type": "str", "no_log": True, "fallback": (env_fallback, ["HOSTING_API_KEY"])},
    "base_url": {"type": "str", "fallback": (env_fallback, ["HOSTING_BASE_URL"])},
    "timeout": {"type": "float", "default": 30},
}
NOUN_OPTIONS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait_timeout": {"type": "float", "default": 600},
    "idempotency_scope": {"type": "str", "default": ""},
}


class Task(AnsibleModule):
    """A module's call that also knows which options the task wrote: "not given" and "null" are two things.

    A private key given by mistake is masked before Ansible logs the call or prints it back. In check mode a list may hold what an earlier
    task could not know yet; it is passed over there, and only there.
    """

    written: frozenset[str]

    def _load_params(self) -> None:
        super()._load_params()
        self.written = frozenset(self.params)
        for name, value in self.params.items():
            if isinstance(value, str) and "PRIVATE KEY" in value:
                self.no_log_values.update({value, *(line for line in value.splitlines() if line)})
            elif isinstance(value, list) and self.params.get("_ansible_check_mode"):
                self.params[name] = [item for item in value if item not in (None, "")]


# --- the two kinds of modules ------------------------------------------------------------------------------------------------


def run_noun(kind: str, options: Mapping[str, Any], *, clears: Mapping[str, Any] | None = None, **rules: Any) -> NoReturn:
    """A module that brings one ``kind`` of the core to its ``state``. ``clears``: what an explicit null of an option stands for."""
    task = Task(argument_spec={**CLIENT_OPTIONS, **NOUN_OPTIONS, **options}, supports_check_mode=True, **rules)
    _conduct(task, lambda: _bring(task, kind, clears or {}))


def run_info(kind: str, result: str, options: Mapping[str, Any], **rules: Any) -> NoReturn:
    """A module that lists objects of ``kind`` under ``result``. ``id`` names one; the other options filter."""
    task = Task(argument_spec={**CLIENT_OPTIONS, **options}, supports_check_mode=True, **rules)
    _conduct(task, lambda: _look(task, kind, result, options))


def _bring(task: Task, kind: str, clears: Mapping[str, Any]) -> dict[str, Any]:
    from pulumi_hosting.api.errors import InvalidInput
    from pulumi_hosting.resources import NOUNS, engine

    noun = NOUNS[kind]
    declared = engine.declared(noun, _mentioned(task, noun, clears))
    if declared.failures:
        raise InvalidInput(declared.failures, noun.title)
    context = _context(task, f"{kind}/{task.params.get('name') or ''}", read_only=task.check_mode)
    ensure = engine.ensure if task.params["state"] == "present" else engine.ensure_absent
    outcome = ensure(context, noun, declared.inputs, id=task.params["id"], dry_run=task.check_mode)
    _hide(task, outcome)
    for remark in outcome.diff.remarks:
        task.warn(remark)
    result = {"changed": outcome.changed, kind: None if outcome.after is None else shape(noun, outcome.after)}
    if task._diff:
        result["diff"] = diff(noun, declared.values, outcome)
    return result


def _look(task: Task, kind: str, result: str, options: Collection[str]) -> dict[str, Any]:
    from pulumi_hosting.resources import NOUNS, engine

    noun = NOUNS[kind]
    context = _context(task, kind, read_only=True)
    filters = {name: task.params[name] for name in options if task.params[name] is not None}
    if (id := filters.pop("id", None)) is not None:
        found = noun.read(context, id)
        states = [] if found is None else [found]
    else:
        states = list(noun.all(context, **filters))
    return {"changed": False, result: [shape(noun, engine.shown(noun, state)) for state in states]}


def _mentioned(task: Task, noun: Noun[Any, Any], clears: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that the task wrote. A null is a wish only where it empties something; elsewhere it is how templates leave a thing out."""
    wishes = {name: task.params[name] for name in noun.Inputs.model_fields if name in task.written}
    nulls = {name: clears[name] for name, value in wishes.items() if value is None and name in clears}
    return {name: value for name, value in wishes.items() if value is not None} | nulls


def _context(task: Task, what: str, *, read_only: bool) -> Context:
    from pulumi_hosting.api.client import Client
    from pulumi_hosting.resources.base import Context

    params = task.params
    client = Client(
        params["api_key"],
        params["base_url"],
        timeout=params["timeout"],
        read_only=read_only,
        user_agent=f"ansible hosting.cloud/{VERSION}",
    )
    return Context(
        client=client,
        identity=f"ansible:{params.get('idempotency_scope') or ''}/{what}",
        name_is_identity=True,
        wait_timeout=params.get("wait_timeout") or 0.0,
        warn=task.warn,
    )


# --- results -----------------------------------------------------------------------------------------------------------------


def shape(noun: Noun[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """One shape on every path: all fields that may be shown, null where nothing is known."""
    hidden = noun.State.secret_fields()
    return {name: values.get(name) for name in noun.State.model_fields if name not in hidden}


def diff(noun: Noun[Any, Any], given: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """What was mentioned, before and after: the same in check mode as for real, in one order, without secrets."""
    hidden = noun.Inputs.secret_fields()
    wished = {name: value for name, value in given.items() if name not in hidden}
    changes = {change.field: change for change in outcome.diff.changes if change.field not in hidden}
    known = outcome.before or {}
    observed = {name: known[name] for name in wished if name not in changes and known.get(name) is not None}
    if outcome.action == "created":
        before, after = {}, wished
    elif outcome.action == "deleted":
        before, after = shape(noun, known), {}
    else:
        before = {**observed, **{name: change.before for name, change in changes.items()}}
        after = {**observed, **{name: change.after for name, change in changes.items()}}
    return {"before": dict(sorted(before.items())), "after": dict(sorted(after.items()))}


def _hide(task: Task, outcome: Outcome) -> None:
    """Have Ansible mask whatever secret came back, should it ever reach a result or a message."""
    if outcome.state is not None:
        values, secret = outcome.state.values(), outcome.state.secret_fields()
        task.no_log_values.update(value for name, value in values.items() if name in secret and value)


# --- errors ------------------------------------------------------------------------------------------------------------------


def _conduct(task: Task, work: Callable[[], dict[str, Any]]) -> NoReturn:
    """Do the work; whatever happens, answer in one line."""
    result = _unusable() or _tried(work)
    # Not from inside an ``except``: Ansible would add what is being handled to the message.
    if "failure" in result:
        task.fail_json(**result)
    task.exit_json(**result)
    raise SystemExit


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result, or a refusal."""
    from pulumi_hosting.api.errors import HostingError

    try:
        return work()
    except HostingError as error:
        return _failure(error)
    except Exception as error:  # noqa: BLE001 — the last one to see it; a traceback may hold what a person must not
        return _defect(error)


def _unusable() -> dict[str, Any] | None:
    """Why the core cannot be used by this interpreter, if so: what to install, and into which."""
    wanted = f"pulumi-hosting >= {CORE}"
    if sys.version_info < PYTHON:
        needed = ".".join(map(str, PYTHON))
        return _refusal(
            f"This module needs Python >= {needed}, but runs under {sys.executable} ({sys.version.split()[0]}). "
            f"Next: set ansible_python_interpreter to one that has {wanted}",
            "missing_library",
        )
    try:
        from importlib.metadata import PackageNotFoundError, version

        from pulumi_hosting.resources import NOUNS  # noqa: F401  # whether it can be imported is the question
    except ImportError:
        return _refusal(missing_required_lib(wanted), "missing_library")
    try:
        installed = version("pulumi-hosting")
    except PackageNotFoundError:  # a source tree on the path, without a version of its own
        return None
    if _numbers(installed) < _numbers(CORE):
        text = missing_required_lib(wanted, reason=f"by hosting.cloud {VERSION}; version {installed} is installed")
        return _refusal(text, "missing_library")
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _failure(error: Any) -> dict[str, Any]:
    """An error of the core as facts. Where the service did not speak, the code is the kind of stop, in snake case."""
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    code = getattr(error, "code", None) or {"noun_error": "refused"}.get(kind, kind)
    return _refusal(
        str(error),
        code,
        status=getattr(error, "status", None),
        request_id=getattr(error, "request_id", None),
        fields=dict(getattr(error, "fields", None) or {}),
    )


def _defect(error: Exception) -> dict[str, Any]:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return _refusal(
        f"Unexpected {type(error).__name__} in {where}. This is a defect of hosting.cloud {VERSION}. Next: report it with this line",
        "defect",
    )


def _refusal(
    text: str, code: str, *, status: int | None = None, request_id: str | None = None, fields: Mapping[str, str] | None = None
) -> dict[str, Any]:
    failure = {"code": code, "status": status, "request_id": request_id, "fields": dict(fields or {})}
    return {"msg": " ".join(text.split()), "failure": failure}
