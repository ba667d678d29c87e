# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where Ansible and the core meet: what a module is, what it is asked, how it answers.

A :class:`Module` is options and work. Its work is asked for by a :class:`Call`, which is an ordinary module process (``task``) or the
action plugin in the controller; both get the same answer. Errors of any kind become one line and facts.

The core is imported inside functions: the modules' documentation and options must be readable where it is not installed.
"""

from __future__ import annotations

import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ansible.module_utils.common.parameters import env_fallback

if TYPE_CHECKING:
    from pulumi_hosting.api.client import Client
    from pulumi_hosting.resources.base import Context
    from pulumi_hosting.resources.budget import Budget

VERSION = "0.1.0"
CORE = "0.1.0"
"""The oldest core that these modules work with."""
PYTHON = (3, 11)


def from_environment(name: str) -> dict[str, Any]:
    """The part of an option's description that reads it from the environment where it is not given."""
    return {"fallback": (env_fallback, [name])}


CLIENT_OPTIONS: dict[str, Any] = {
    "api_key": {"type": "str", "no_log": True, **from_environment("HOSTING_API_KEY")},
    "base_url": {"type": "str", **from_environment("HOSTING_BASE_URL")},
    "timeout": {"type": "float", "default": 30},
    # Of no use to modules that only read; they take them all the same, so that a play can set them for the whole group.
    "mode": {"type": "str", "choices": ["live", "test"], **from_environment("HOSTING_MODE")},
    "max_charge": {"type": "str", **from_environment("HOSTING_MAX_CHARGE")},
}
WAIT_OPTIONS: dict[str, Any] = {
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "float", "default": 600},
}


class Call(ABC):
    """One task as it reached us. ``written``: the options that the task names, since "not given" and "null" are two things."""

    params: Mapping[str, Any]
    written: frozenset[str]
    check_mode: bool
    wants_diff: bool

    @abstractmethod
    def warn(self, warning: str) -> None:
        """Show a line to whoever runs the playbook."""

    @abstractmethod
    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these values, should they ever reach a result or a message."""

    @abstractmethod
    def connect(self, read_only: bool) -> Client:
        """A client for the task's key and address."""

    @abstractmethod
    def budget(self) -> Budget:
        """What has been charged so far in this run."""

    approved: dict[str, Any] | None = None
    """The charge that was approved last: should the task fail afterwards, it may have been made."""

    def release(self) -> None:
        """What was approved was refused by the service and not charged."""
        self.approved = None

    @abstractmethod
    def foretell(self, kind: str, name: str) -> None:
        """Remember for later tasks of this check run that this one would make the object."""

    @abstractmethod
    def is_foretold(self, kind: str, name: str) -> bool:
        """Whether an earlier task of this check run would make it."""


def private_lines(params: Mapping[str, Any]) -> Iterable[str]:
    """The lines of private keys that were given by mistake: they must not be logged or printed back."""
    for value in params.values():
        if isinstance(value, str) and "PRIVATE KEY" in value:
            yield value
            yield from filter(None, value.splitlines())


def without_unknown_items(params: Mapping[str, Any]) -> dict[str, Any]:
    """In check mode a list may hold what an earlier task could not know yet; it is passed over there, and only there."""
    return {
        name: [item for item in value if item not in (None, "")] if isinstance(value, list) else value for name, value in params.items()
    }


class Module(ABC):
    """A module: its options, the rules between them, and its work.

    ``shared``: options that it has in common with its like; ``charges``: whether its work may be paid from the balance; ``rules``: as
    ``AnsibleModule`` takes them (``mutually_exclusive`` …).
    """

    shared: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, options: Mapping[str, Any], *, charges: bool = False, **rules: Any) -> None:
        self.options = options
        self.charges = charges
        self.rules = rules

    @property
    def argument_spec(self) -> dict[str, Any]:
        return {**CLIENT_OPTIONS, **self.shared, **self.options}

    def run(self) -> NoReturn:
        """Be a module: read the arguments, answer, end."""
        from ansible_collections.hosting.cloud.plugins.module_utils.task import Task

        task = Task(argument_spec=self.argument_spec, supports_check_mode=True, **self.rules)
        task.end(self.answer(task))

    def answer(self, call: Call) -> dict[str, Any]:
        """The task's result; with a ``failure`` where it failed. Nothing is raised."""
        result = unusable() or tried(lambda: self.work(call))
        if "failure" in result and call.approved is not None:
            if 400 <= (result["failure"]["status"] or 0) < 500:
                call.release()
            else:
                result["failure"]["charge"] = call.approved
        return result

    @abstractmethod
    def work(self, call: Call) -> dict[str, Any]:
        """Do it. Whatever is raised becomes a failure."""


def connected(params: Mapping[str, Any], read_only: bool) -> Client:
    """A client for a task's options."""
    from pulumi_hosting.api.client import Client

    return Client(
        params["api_key"],
        params["base_url"],
        timeout=params["timeout"],
        read_only=read_only,
        user_agent=f"ansible hosting.cloud/{VERSION}",
    )


def new_budget() -> Budget:
    """A budget in which nothing is charged yet."""
    from pulumi_hosting.resources.budget import Budget

    return Budget("max_charge")


def context_of(call: Call, what: str, *, read_only: bool) -> Context:
    """The task as the core sees it. ``what`` names the declaration, so that an interrupted run is found again."""
    from pulumi_hosting.api.errors import InvalidInput
    from pulumi_hosting.resources.base import Context

    params = call.params
    if (params.get("wait_timeout") or 0) < 0:
        raise InvalidInput({"wait_timeout": "must be seconds: 0 or more"})
    return Context(
        client=call.connect(read_only),
        identity=f"ansible:{params.get('idempotency_scope') or ''}/{what}",
        name_is_identity=True,
        keeps_secrets=bool(params.get("root_password_file")),
        wait_timeout=0.0 if params.get("wait") is False else params.get("wait_timeout") or 0.0,
        declared_mode=params.get("mode"),
        warn=call.warn,
    )


def limited(call: Call, identity: str) -> Callable[[Any], None]:
    """Approves a charge, or raises ``NounError`` where it goes beyond ``max_charge``. Raises ``InvalidInput`` for a limit that is none."""
    from pulumi_hosting.api.errors import InvalidInput
    from pulumi_hosting.resources.base import NounError
    from pulumi_hosting.resources.budget import NOT_A_LIMIT, money_limit

    given = call.params.get("max_charge")
    limit = None if given is None else money_limit(given)
    if given is not None and limit is None:
        raise InvalidInput({"max_charge": NOT_A_LIMIT})

    def approve(cost: Any) -> None:
        if limit is None:
            return
        if cost is None:
            if not call.connect(True).is_test_key:
                raise NounError(
                    "its price is not known, and max_charge limits it; it is not ordered. Next: run again, or leave max_charge out"
                )
            return
        budget = call.budget()
        budget.limit = limit
        if refusal := budget.refusal(identity, cost):
            raise NounError(refusal)
        if not call.check_mode:
            call.approved = charge(str(cost.amount), cost.currency)

    return approve


def charge(amount: str | None, currency: str | None) -> dict[str, Any] | None:
    """What a task charges, as results show it."""
    return None if amount is None else {"amount": amount, "currency": currency}


# --- errors ------------------------------------------------------------------------------------------------------------------


def tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result, or a refusal."""
    from pulumi_hosting.api.errors import HostingError

    try:
        return work()
    except HostingError as error:
        return failure_of(error)
    except Exception as error:  # noqa: BLE001 — the last one to see it; a traceback may hold what a person must not
        return _defect(error)


def unusable() -> dict[str, Any] | None:
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
        from pulumi_hosting.resources import NOUNS  # noqa: F401  # whether it can be imported is the question
    except ImportError:
        return _refusal(_missing(wanted), "missing_library")
    installed = _installed()
    if installed is not None and _numbers(installed) < _numbers(CORE):
        text = _missing(wanted, reason=f"by hosting.cloud {VERSION}; version {installed} is installed")
        return _refusal(text, "missing_library")
    return None


def _missing(wanted: str, reason: str | None = None) -> str:
    from ansible.module_utils.basic import missing_required_lib

    text: str = missing_required_lib(wanted, reason=reason)
    return f"{text} Next: {sys.executable} -m pip install '{wanted}'"


_VERSIONS: dict[str, str | None] = {}


def _installed() -> str | None:
    """The core's version; None for a source tree on the path. Looked up once per process: it reads the disk."""
    if "core" not in _VERSIONS:
        from importlib.metadata import PackageNotFoundError, version

        try:
            _VERSIONS["core"] = version("pulumi-hosting")
        except PackageNotFoundError:
            _VERSIONS["core"] = None
    return _VERSIONS["core"]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def failure_of(error: Any) -> dict[str, Any]:
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


def refusal_of_arguments(text: str) -> dict[str, Any]:
    """What Ansible itself refuses, as facts like every other failure."""
    return _refusal(text, "invalid_input")


def _refusal(
    text: str, code: str, *, status: int | None = None, request_id: str | None = None, fields: Mapping[str, str] | None = None
) -> dict[str, Any]:
    failure = {"code": code, "status": status, "request_id": request_id, "fields": dict(fields or {})}
    return {"msg": " ".join(text.split()), "failure": failure}
