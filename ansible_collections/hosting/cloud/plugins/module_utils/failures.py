# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Errors as Ansible results: one line, and ``failure`` with the facts. Also whether ``pulumi_hosting`` can be
used at all."""

from __future__ import annotations

import re
import sys
import traceback
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from .json_types import Json
from .version import CORE, VERSION

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.client.exceptions import ANY_REQUEST, CallError, HostingError, InvalidInput
    from pulumi_hosting.client.words import Words
    from pulumi_hosting.session.errors import ResourceError, about, and_then


if TYPE_CHECKING:
    from .task import ModuleTask

PYTHON = (3, 11)
"""The oldest Python version that ``pulumi_hosting`` supports."""
ORDER_FAILED = "order_failed"
"""The code of an order that was not delivered. Its charge was returned."""
FACTS: Json = {
    "status": None,
    "request_id": None,
    "fields": {},
    "outcome_unknown": False,
    "idempotency_key": None,
}
"""The facts of a failure beside its code, empty."""
CODES = {
    "failed": "refused",
    "key_lacks_scope": "insufficient_scope",
    "limit_exceeded": "max_charge",
    "no_such_object": "not_found",
    "resource_error": "refused",
}
"""Codes of our own errors, where they are not the name of the class in snake case."""


def words() -> Words:
    """What advice names to the person who runs a playbook."""
    return Words(
        again="run the playbook again",
        repeat="run the playbook again: it finds what was done, and pays nothing twice",
        read="ansible-playbook --check",
        apply="ansible-playbook",
        read_and_apply="ansible-playbook",
        remove="a task with state: absent",
        api_key="HOSTING_API_KEY or the option api_key",
        key_setting="the option api_key (or HOSTING_API_KEY in environment)",
        base_url="HOSTING_BASE_URL or the option base_url",
        rate_limit_timeout="rate_limit_timeout",
        reset="hosting.cloud.server_password with id: {id} and password_file",
        renew="hosting.cloud.{kind}_renew with id: {id} and until: {until}",
        top_up="hosting.cloud.balance_topup with amount: {amount}, balance_below: {due}, gateway: {gateway}",
        pay="hosting.cloud.invoice_pay with id: {id}",
        forget="",
    )


def failed(error: Exception, task: ModuleTask | None = None, called: str = "") -> Json:
    """The failure that an error is; with what the ``task`` had done before it. ``called``: its object."""
    if isinstance(error, HostingError):
        error._words = words()
        about(error, called)
        if isinstance(error, InvalidInput) and error.subject == ANY_REQUEST and task is not None:
            error.subject = ""
            named = {f"{'option ' * (name in task.params)}{name}": why for name, why in error.fields.items()}
            error.args = ("; ".join(f"{name}: {why}" for name, why in named.items()),)
    failure = failure_of(error) if isinstance(error, HostingError) else _unexpected(error)
    return failure if task is None else _with_what_was_done(task, failure, error, called or "this task")


def _with_what_was_done(task: ModuleTask, failure: Json, error: Exception, called: str) -> Json:
    """The failure, with what the task's own requests had bought, paid or changed before it."""
    if task.check_mode or failure["failure"]["code"] == ORDER_FAILED:
        return failure
    try:
        known = task.progress.result() if task.progress is not None else {}
    except HostingError:  # the account cannot be read now
        known = {}
    known.pop("diff", None)
    if not (known.get("changed") or task.wrote):
        # what failed last may be a look at the account, after an order whose answer was lost
        failure["failure"]["outcome_unknown"] |= task.in_doubt
        return failure
    made = known.get("charge") or {}
    charged = made.get("amount") is not None
    cost = f" and was charged {made['amount']} {made['currency'] or ''}".rstrip() if charged else ""
    what = (
        f"{task.progress.what}{cost}"
        if task.progress is not None and known.get("changed")
        else f"{called}: a part was done"
    )
    # After an error of the service the next run does the rest. Our own errors say themselves what to do next.
    rest = failure["msg"]
    if isinstance(error, ResourceError):
        error.subject = ""
        rest = str(error)
    elif isinstance(error, CallError):
        step, error.subject = f"{words().again}, which sets the rest", ""
        rest = f"{error.summary.rstrip('.')}. {and_then(error, step)}"
    return {**known, **failure, "changed": True, "msg": " ".join(f"{what}; {rest}".split())}


def failure_of(error: Any) -> Json:
    """An error of ``pulumi_hosting`` as a result. Where the service gave no code, it is the class's name in
    snake case."""
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    code = getattr(error, "code", None) or CODES.get(kind, kind)
    facts = {name: getattr(error, name, None) or empty for name, empty in FACTS.items()}
    return _failure(str(error), code, **{**facts, "fields": dict(facts["fields"])})


def invalid_arguments(text: str) -> Json:
    """The failure of a task whose arguments Ansible itself refuses."""
    return _failure(f"{text.rstrip('.')}. Next: correct the options of this task", "invalid_input")


def _unexpected(error: Exception) -> Json:
    """An error of a file, which the task or the run names; any other is a defect."""
    of_network = (ConnectionError, TimeoutError)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, of_network):
        place = f"{error.filename}: " if error.filename else ""
        step = "correct the path, or make room there"
        return _failure(f"{place}{error.strerror}. Next: {step}", "local_files_error")
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    what = f"Unexpected {type(error).__name__} in {where}"
    return _failure(
        f"{what}. This is a defect of hosting.cloud {VERSION}. Next: report it with this line", "defect"
    )


def _failure(text: str, code: str, **facts: Any) -> Json:
    return {"msg": " ".join(text.split()), "failure": {"code": code, **FACTS, **facts}}


# --- whether pulumi_hosting can be used ---


def unusable() -> Json | None:
    """Why this interpreter cannot use ``pulumi_hosting``, and what to install where; None if it can."""
    wanted = f"pulumi-hosting >= {CORE}"
    if sys.version_info < PYTHON:
        needed = ".".join(map(str, PYTHON))
        found = f"runs under {sys.executable} ({sys.version.split()[0]})"
        advice = f"set ansible_python_interpreter to one that has {wanted}"
        return _failure(
            f"This module needs Python >= {needed}, but {found}. Next: {advice}", "missing_library"
        )
    reason = None
    with suppress(ImportError):
        from pulumi_hosting.resources import RESOURCES  # noqa: F401  # only whether it can be imported

        installed = _installed()
        if installed is None or _numbers(installed) >= _numbers(CORE):
            return None
        reason = f"by hosting.cloud {VERSION}; version {installed} is installed"
    from ansible.module_utils.basic import missing_required_lib

    text = missing_required_lib(wanted, reason=reason)
    # Not its name alone: it is on no package index, where another user may register it.
    advice = f"{sys.executable} -m pip install PATH, that of a clone or of the wheel"
    return _failure(f"{text} Next: {advice}", "missing_library")


@cache
def _installed() -> str | None:
    """The installed version; None for a source tree on the path. Read from disk once per process."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pulumi-hosting")
    except PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
