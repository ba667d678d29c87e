# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where Ansible and the core meet: what a module is, what it is asked, how it answers.

A :class:`Module` is options and work. Its work is asked for by a :class:`Call`, which is an ordinary module process (``task``) or the
action plugin in the controller; both get the same answer. Errors of any kind become one line and facts.

The core is imported inside functions: the modules' documentation and options must be readable where it is not installed.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ansible.module_utils.common.parameters import env_fallback

from ansible_collections.hosting.cloud.plugins.module_utils.ledger import Ledger
from ansible_collections.hosting.cloud.plugins.module_utils.planned import Planned, PlannedWire, without_planned_ids
from ansible_collections.hosting.cloud.plugins.module_utils.version import CORE, VERSION

if TYPE_CHECKING:
    from pulumi_hosting.client.client import Client
    from pulumi_hosting.session.context import Context
    from pulumi_hosting.session.cost import Cost

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


@dataclass(frozen=True)
class Done:
    """What a task has done so far. ``what``: in words, such as ``server 20001 exists``. ``result``: what its result says of it
    (``changed``, ``charge``, the object)."""

    what: str
    result: Callable[[], dict[str, Any]]


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
    def ledger(self) -> Ledger:
        """What the run has charged so far on the task's account. Asks the service whose account it is."""

    planned: Planned | None = None
    """In check mode: what the earlier tasks of the run would have done to the account."""
    refusal: str | None = None
    """Why its options cannot be used, if so."""
    movement: str | None = None
    """What names its charge among those of the run."""
    booking: tuple[str, Cost] | None = None
    """The purchase that was booked last, and its announced price."""
    lost: list[str] | None = None
    """The ids of purchases whose answer was lost, so that they may have been carried out. Kept by :class:`WatchedWire`."""
    done: Done | None = None
    """What the task has done, should it fail later."""
    wrote = False
    """Whether a request of the task, other than an order or a payment, has changed something."""
    paid: Mapping[str, Any] | None = None
    """The answer of the task's payment: a renewal, or an invoice."""
    replayed = False
    """Whether the last order was answered as one that another process had sent: the password in the answer was blank."""


def private_lines(params: Mapping[str, Any]) -> Iterable[str]:
    """The lines of private keys that were given by mistake: they must not be logged or printed back."""
    for value in params.values():
        if isinstance(value, str) and "PRIVATE KEY" in value:
            yield value
            yield from filter(None, value.splitlines())


def booleans(spec: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """Which options were given a boolean where text or a number is meant, if any: YAML reads an unquoted ``no`` or ``on`` as one."""
    for name, value in given.items():
        wanted = spec.get(name, {}).get("elements" if isinstance(value, list) else "type")
        if wanted in ("str", "int", "float") and any(isinstance(item, bool) for item in (value if isinstance(value, list) else [value])):
            kind = "text" if wanted == "str" else "a number"
            return f"{name}: must be {kind}, not a boolean. Next: put it in quotes, or correct it"
    return None


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
        if call.refusal is not None:
            return refusal_of_arguments(call.refusal)
        result = unusable() or tried(lambda: self.work(call), call)
        if call.planned is not None:
            result = without_planned_ids(result)
        if not (call.booking or result.get("charge")):
            return result
        counted = tried(lambda: settled(call, result))
        return {**result, **counted} if "failure" in counted else counted  # what was charged stays in it

    @abstractmethod
    def work(self, call: Call) -> dict[str, Any]:
        """Do it. Whatever is raised becomes a failure."""


def connected(params: Mapping[str, Any], read_only: bool, call: Call | None = None) -> Client:
    """A client for a task's options, which tells the ``call`` what becomes of its requests."""
    from pulumi_hosting.client.client import Client

    client = Client(
        params["api_key"],
        params["base_url"],
        timeout=params["timeout"],
        read_only=read_only,
        user_agent=f"ansible hosting.cloud/{VERSION}",
    )
    return client if call is None else watched(client, call)


def watched(client: Client, call: Call) -> Client:
    """The client, serving this ``call`` from now on."""
    wire: Any = client._wire
    while isinstance(wire, WatchedWire | PlannedWire):
        wire = wire.inner
    if call.lost is None:
        call.lost = []
    watching: Any = WatchedWire(wire, call) if call.planned is None else PlannedWire(wire, call.planned)
    client._wire = watching
    return client


PAYMENTS = frozenset({"renew_server", "renew_domain", "pay_invoice"})
PURCHASES = frozenset({"create_server", "add_server_ip", "register_domain", "transfer_domain"})


class WatchedWire:
    """Notes which purchases of a task had no answer that tells whether they were carried out, and which were another process's."""

    def __init__(self, inner: Any, call: Call) -> None:
        self.inner, self._call = inner, call

    def send(self, request: Any, *rest: Any, **options: Any) -> Any:
        try:
            answer = self.inner.send(request, *rest, **options)
        except Exception:
            self._note(request)
            raise
        if request.operation.id not in PURCHASES:
            if answer.status < 300 and request.operation.method != "GET":
                self._changed(request.operation.id, answer.body)
            return answer
        shown = _object(answer.body)
        if answer.status >= 500 or (answer.status < 300 and shown is None):  # what cannot be read is the client's to refuse
            self._note(request)
        elif request.operation.id == "create_server" and answer.status == 201 and shown is not None:
            # A replay shows no secret (API document, "Idempotency").
            password = shown.get("root_password")
            self._call.replayed = not password and (password == "" or "password" not in json.loads(request.body))
        return answer

    def close(self) -> None:
        self.inner.close()

    def _changed(self, operation: str, body: Any) -> None:
        if operation in PAYMENTS:
            self._call.paid = _object(body) or {}
        else:
            self._call.wrote = True

    def _note(self, request: Any) -> None:
        if request.operation.id in PURCHASES and self._call.lost is not None:
            self._call.lost.append(request.operation.id)


def _object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that the body is; None if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def context_of(call: Call, what: str, *, read_only: bool) -> Context:
    """The task as the core sees it. ``what`` names the declaration, so that an interrupted run is found again."""
    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.session.context import Context

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
    """Books a charge before it is made. Raises ``LimitExceeded`` for one beyond ``max_charge``, ``InvalidInput`` for a limit that is
    none."""
    from pulumi_hosting.session.errors import LimitExceeded

    limit = limit_of(call.params.get("max_charge"))

    def approve(cost: Any) -> None:
        if cost is None:
            if limit is not None and not call.connect(True).is_test_key:
                raise LimitExceeded(
                    "its price is not known, and max_charge limits it; it is not ordered. Next: run again, or leave max_charge out"
                )
            return
        if refusal := call.ledger().book(identity, cost, limit):
            raise LimitExceeded(refusal)
        call.booking = (identity, cost)

    return approve


def limit_of(given: object) -> Decimal | None:
    """The amount that ``max_charge`` names; None where the task has none. Raises ``InvalidInput``, also for an empty text: a variable that
    was meant to hold the limit and is not set must not lift it."""
    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.planning.budget import NO_LIMIT, NOT_A_LIMIT, money_limit

    if given is None:
        return None
    limit = money_limit(given)
    if limit is None:
        raise InvalidInput({"max_charge": NOT_A_LIMIT if str(given).strip() else NO_LIMIT})
    return limit


IN_PROGRESS = "idempotency_in_progress"
ORDER_FAILED = "order_failed"
"""The code of an order that was not delivered, and whose charge was returned."""


def settled(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    """The result, once its charge is counted. It is reported by the one task whose request made it."""
    failure = result.get("failure")
    movement = call.movement
    identity, cost = call.booking or (movement or "", None)
    if failure is not None and result.get("charge") is None:
        refused = failure["code"] == ORDER_FAILED or (
            400 <= (failure["status"] or 0) < 500 and failure["code"] != IN_PROGRESS and not failure.get("outcome_unknown")
        )
        if refused and call.booking:
            call.ledger().settle(identity, None)
        elif cost is not None and not call.check_mode:
            failure["charge"] = charge(str(cost.amount), cost.currency)
        return result
    made = result.get("charge")
    if made is not None and made["amount"] is None:
        made = None
    if made is not None and movement is not None and not call.ledger().claim(movement):
        # Another host did the same at the same moment: it was bought once, and that host says so.
        result.update(changed=failure is not None and call.wrote, charge=None)
        result.pop("diff", None)
        made = None
    call.ledger().settle(identity, made)
    if made is not None and cost is not None and Decimal(made["amount"]) > cost.amount:
        reason = (
            f"{made['amount']} {made['currency']} were charged for {cost.what}, more than the announced {cost.amount}; this run orders "
            "nothing more. Next: look at the price, then run again"
        )
        call.ledger().stop(reason)
        call.warn(reason)
    return result


def charge(amount: str | None, currency: str | None) -> dict[str, Any] | None:
    """What a task charges, as results show it."""
    return None if amount is None else {"amount": amount, "currency": currency}


# --- errors ------------------------------------------------------------------------------------------------------------------


def tried(work: Callable[[], dict[str, Any]], call: Call | None = None) -> dict[str, Any]:
    """The result, or a refusal, which says what the ``call`` had done before."""
    from pulumi_hosting.client.exceptions import HostingError

    try:
        return work()
    except HostingError as error:
        failed = failure_of(error)
        return failed if call is None else _with_what_was_done(call, failed, error)
    except Exception as error:  # noqa: BLE001 — the last one to see it; a traceback may hold what a person must not
        failed = _defect(error)
        return failed if call is None else _with_what_was_done(call, failed, error)


def _with_what_was_done(call: Call, failed: dict[str, Any], error: Exception) -> dict[str, Any]:
    """A failure, with what the task's own requests had bought, paid or changed before it."""
    from pulumi_hosting.client.exceptions import CallError, HostingError

    if call.check_mode or failed["failure"]["code"] == ORDER_FAILED:
        return failed
    try:
        known = call.done.result() if call.done is not None else {}
    except HostingError:  # the account cannot be asked now
        known = {}
    known.pop("diff", None)
    if not (known.get("changed") or call.wrote):
        return failed
    made = known.get("charge") or {}
    cost = f" and was charged {made['amount']} {made['currency'] or ''}".rstrip() if made.get("amount") is not None else ""
    what = f"{call.done.what}{cost}" if call.done is not None and known.get("changed") else "a part was done"
    # What an answer of the service stopped is set by the next run; where we stopped ourselves, the error knows the way on.
    rest = (
        f"{error.summary.rstrip('.')}. Next: run the playbook again, which sets the rest" if isinstance(error, CallError) else failed["msg"]
    )
    return {**known, **failed, "changed": True, "msg": " ".join(f"{what}; {rest}".split())}


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
        from pulumi_hosting.resources import RESOURCES  # noqa: F401  # whether it can be imported is the question
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


CODES = {
    "failed": "refused",
    "key_lacks_scope": "insufficient_scope",
    "limit_exceeded": "max_charge",
    "no_such_object": "not_found",
    "resource_error": "refused",
}
"""Codes of stops that the service had no part in, where they are not the error's name in snake case."""


def failure_of(error: Any) -> dict[str, Any]:
    """An error of the core as facts. Where the service did not speak, the code is the kind of stop, in snake case."""
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    code = getattr(error, "code", None) or CODES.get(kind, kind)
    return _refusal(
        str(error),
        code,
        status=getattr(error, "status", None),
        request_id=getattr(error, "request_id", None),
        fields=dict(getattr(error, "fields", None) or {}),
        outcome_unknown=bool(getattr(error, "outcome_unknown", False)),
        idempotency_key=getattr(error, "idempotency_key", None),
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


def _refusal(text: str, code: str, **facts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"status": None, "request_id": None, "fields": {}, "outcome_unknown": False, "idempotency_key": None}
    return {"msg": " ".join(text.split()), "failure": {"code": code, **empty, **facts}}
