# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What every module is: options, the rules between them, and the work that a task asks for.

A module is run by a process of its own (:mod:`module_process`) or by the action plugin in the controller.
Both give it a :class:`ModuleTask` and print the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any, ClassVar, NoReturn

from .failures import ORDER_FAILED, failed, invalid_arguments, unusable
from .json_types import Json, Values
from .planned_account import without_planned_ids
from .shared_options import CLIENT_OPTIONS
from .task import ModuleTask

with suppress(ImportError):  # the task then says what is missing, and where
    from pydantic import BaseModel

    from pulumi_hosting.api.operations import Operation
    from pulumi_hosting.resources.base import Record
    from pulumi_hosting.session.cost import Cost
    from pulumi_hosting.session.snapshot_text import row_model


NOT_CHARGED = (ORDER_FAILED, "max_charge", "lock_timeout", "store_refused", "store_unavailable")
"""Codes of purchases that were not sent, or not delivered."""


class HostingModule(ABC):
    """A module.

    - ``shared``: options that it has in common with other modules of its class.
    - ``charges``: whether its work may be paid from the balance.
    - ``rules``: as ``AnsibleModule`` takes them (``mutually_exclusive`` …).
    """

    shared: ClassVar[Values] = {}

    def __init__(self, options: Values, *, charges: bool = False, **rules: Any) -> None:
        self.options = options
        self.charges = charges
        self.rules = rules

    @property
    def argument_spec(self) -> Json:
        return {**CLIENT_OPTIONS, **self.shared, **self.options}

    def run(self) -> NoReturn:
        """Run as a process: read the arguments, do the work, print the result, end."""
        from .module_process import ModuleProcess

        process = ModuleProcess(argument_spec=self.argument_spec, supports_check_mode=True, **self.rules)
        process.end(self.answer(process.task))

    def answer(self, task: ModuleTask) -> Json:
        """The task's result, with ``failure`` where it failed. Raises nothing."""
        if task.refusal is not None:
            return invalid_arguments(task.refusal)
        with suppress(OSError):  # it only helps other tasks: what must be locked stops where it is locked
            task.memory.declare(*self.declared_servers(task))
        try:
            result = unusable() or self.work(task)
        except Exception as error:  # noqa: BLE001  # nothing catches it after us, and a traceback may show secrets
            result = failed(error, task, self.called(task))
        if "failure" not in result or result.get("charge"):
            task.was_reported()
        if task.check_mode:
            result = without_planned_ids(result)
        try:
            return with_amounts(task, settle_charge(task, result))
        except Exception as error:  # noqa: BLE001  # the same
            return {**result, **failed(error)}

    def called(self, task: ModuleTask) -> str:
        """What a message calls the task's object; empty if it has no name of its own."""
        return ""

    def declared_servers(self, task: ModuleTask) -> list[list[str | None]]:
        """Id and name of each server that the task declares; None where it does not say it."""
        return []

    def load(self) -> list[type[BaseModel]]:
        """Load what the work uses, and return the models of which it makes objects. Called where
        ``pulumi_hosting`` can be used."""
        return []

    @abstractmethod
    def work(self, task: ModuleTask) -> Json:
        """Do the work. Whatever it raises becomes a failure."""


def models_of(operations: Iterable[Operation]) -> list[type[BaseModel]]:
    """What these operations are asked with, and answer."""
    models: list[Any] = []
    for operation in operations:
        models += (operation.query, operation.responses[operation.success], row_model(operation.id))
    return [model for model in models if hasattr(model, "model_rebuild")]


def shown_fields(model: type[Record], values: Values) -> Json:
    """All fields of a state or a result but its secrets; null where a value is not known."""
    hidden = model.secret_fields()
    return {name: values.get(name) for name in model.model_fields if name not in hidden}


def with_amounts(task: ModuleTask, result: Json) -> Json:
    """The result. What is charged and credited stands below its difference, which ``--diff`` shows."""
    is_of_server = result.get("charge") and not {"domain", "invoice"} & result.keys()
    at_least = is_of_server and task.check_mode and task.memory.planned_objects("server")[2]
    if at_least and task.memory.is_first("at least"):
        reason = "a discount for several servers may be lower after the deletions that this run plans"
        task.warn(f"an order may cost more than shown: {reason}")
    lines = "".join(
        f"{name}: {amount['amount'] or 'not known'} {amount['currency'] or ''}".rstrip() + "\n"
        for name in ("charge", "refund")
        if (amount := result.get(name))
    )
    if at_least:
        lines = lines.replace("charge: ", "charge: at least ")
    if lines and result.get("diff"):
        return {**result, "diff": {**result["diff"], "prepared": lines}}
    return result


def settle_charge(task: ModuleTask, result: Json) -> Json:
    """The result, once its charge is counted. Each charge is reported by one task of the run."""
    if not (task.booking or task.charge_name or result.get("charge")):
        return result
    failure = result.get("failure")
    identity, cost = task.booking or (task.charge_name or "", None)
    if failure is not None and result.get("charge") is None:
        if task.booking and _was_refused(failure):
            task.memory.settle(identity, None)
        elif cost is not None and not task.check_mode:
            failure["charge"] = as_charge(str(cost.amount), cost.currency)
        return result
    made = result.get("charge")
    if made is not None and made["amount"] is None:
        made = None
    is_reported = made is not None or (result.get("changed") and not result.get("charge"))
    if is_reported and task.charge_name is not None and not task.memory.claim(task.charge_name):
        # Another host made, bought or deleted the same at the same moment, once, and reports it.
        result.update(changed=failure is not None and task.wrote, **{"charge": None} if made else {})
        result.pop("diff", None)
        made = None
    task.memory.settle(identity, made)
    if made is not None and cost is not None and Decimal(made["amount"]) > cost.amount:
        reason = (
            f"{made['amount']} {made['currency']} were charged for {cost.what}, more than the announced "
            f"{cost.amount}; this run orders nothing more. Next: look at the price, then run again"
        )
        task.memory.stop(reason)
        task.warn(reason)
    return result


def _was_refused(failure: Values) -> bool:
    """Whether the failure says that nothing was charged."""
    refused = 400 <= (failure["status"] or 0) < 500 and failure["code"] != "idempotency_in_progress"
    return not failure.get("outcome_unknown") and (refused or failure["code"] in NOT_CHARGED)


def as_charge(amount: str | None, currency: str | None) -> Json | None:
    """A charge as results show it."""
    return None if amount is None else {"amount": amount, "currency": currency}


def charge_of(known: Values, cost: Cost | None) -> Json:
    """What it charged according to the service, else its price. A price that is not known is not shown as
    free."""
    amount = known.get("charged") or (cost and cost.amount)
    currency = known.get("currency") or (cost and cost.currency)
    return {"amount": None if amount is None else str(amount), "currency": currency}
