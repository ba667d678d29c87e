# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The modules of servers, and of what belongs to a server: bought addresses and reverse DNS."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .action_module import CoreActionModule
from .json_types import Json, Values
from .module import as_charge, shown_fields
from .predictions import refund_of
from .resource_module import ALREADY_ABSENT, ResourceModule
from .run_memory import is_planned
from .secret_file import SecretFile
from .shared_options import STATE_OPTION
from .task import ModuleTask

with suppress(ImportError):  # the task then says what is missing, and where
    from pulumi_hosting.api.values import id_number, passes
    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.exactly_once import address_list, catalog_reads
    from pulumi_hosting.exactly_once.server_search import refuse_renamed
    from pulumi_hosting.planning import apply
    from pulumi_hosting.planning.apply import Outcome
    from pulumi_hosting.planning.check import declared
    from pulumi_hosting.planning.plan import unknown_price
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.resources.powers import is_provisional, listed
    from pulumi_hosting.resources.server_fields import ServerState
    from pulumi_hosting.session.errors import AmbiguousMatch, NoSuchObject, ResourceError
    from pulumi_hosting.session.request import Request


if TYPE_CHECKING:
    from decimal import Decimal

    from pulumi_hosting.actions import ActionOutcome
    from pulumi_hosting.resources.base import State

ACTIONS_OF_STATES = {"restarted": "server_restart", "reinstalled": "server_reinstall"}
POWER_OF_STATES = {"started": "running", "stopped": "stopped"}


class ServerModule(ResourceModule):
    """``started`` and ``stopped`` are ``present`` with a power. ``restarted`` and ``reinstalled`` are actions
    on a server."""

    file_option: ClassVar = "root_password_file"
    shared: ClassVar[Values] = {
        **ResourceModule.shared,
        "state": {**STATE_OPTION, "choices": ["present", "absent", *POWER_OF_STATES, *ACTIONS_OF_STATES]},
    }

    def declared_servers(self, task: ModuleTask) -> list[list[str | None]]:
        return [] if self.is_absent(task) else [[task.params.get("id"), task.params.get("name")]]

    def implied(self, task: ModuleTask) -> Json:
        power = POWER_OF_STATES.get(task.params["state"])
        return super().implied(task) | ({"power": power} if power else {}) | _keys(task) | _adopted(task)

    def begin(self, task: ModuleTask, request: Request) -> Json | None:
        super().begin(task, request)
        if task.params["ready"] and not task.params["wait"]:
            raise InvalidInput({"ready": "is not waited for with wait: false"}, self.called(task))
        file, state = self.secret_file(task), task.params["state"]
        # The service shows the password once: keep it before anything else can fail.
        request.save = partial(_keep_password, task, file, request.mode)
        request.credited = partial(_credited, task)
        if state not in ACTIONS_OF_STATES:
            return None
        action = ServerActionModule(ACTIONS_OF_STATES[state], self.options)
        # What is done to the server must not depend on how another task saw it.
        result = action.act(task, replace(request, session=task.request("").session))
        result = self._with_file(task, result) if action.generates_password(task) else result
        return self._ready(task, request, result)

    def finish(self, task: ModuleTask, request: Request, outcome: Outcome, result: Json) -> Json:
        if self.is_absent(task):
            if task.check_mode and outcome.action == "deleted" and outcome.before is not None:
                credit = refund_of(request, self.resource, outcome.before["id"])
                if credit is not None:
                    task.refund = as_charge(str(credit), outcome.before.get("currency"))
            return {**result, "refund": task.refund}
        if outcome.action == "created":
            return self._with_file(task, result)
        _report_lost_password(task, self.secret_file(task), request.mode, result["server"])
        return self._ready(task, request, result)

    @staticmethod
    def _ready(task: ModuleTask, request: Request, result: Json) -> Json:
        """The result, once the server answers. Nothing remembers that it did, so each task looks."""
        if not task.params["ready"] or task.check_mode:
            return result
        from pulumi_hosting.resources.server import ServerBase  # only a server's task needs it

        found = ServerState.partial(result["server"])
        there = ServerBase.until_ready(request, found, task.params["ready"])
        return {**result, "server": shown_fields(ServerState, there.shown())}

    def _with_file(self, task: ModuleTask, result: Json) -> Json:
        """The result of a task that writes the password file."""
        file = self.secret_file(task)
        return result if file is None or result.get("diff") is None else file.in_diff(result)


def _credited(task: ModuleTask, amount: Decimal, currency: str | None) -> None:
    task.refund = as_charge(str(amount), currency)


def _keep_password(task: ModuleTask, file: SecretFile | None, mode: str, state: Any) -> None:
    """Write the generated root password to the file, if the service showed one."""
    password = state.values().get("root_password")
    if password and password != task.params.get("password"):
        task.hide([str(password)])
        if file is not None:
            file.keep(str(password), mode, task.warn)


def _report_lost_password(
    task: ModuleTask, file: SecretFile | None, mode: str, server: Values | None
) -> None:
    """Say that the file was never written, and which task has another password made. Nothing remembers why:
    the answer of the order was lost, or the server is older than the option."""
    if file is None or file.exists or mode == "test":  # nothing that a test key makes is written
        return
    id = str((server or {}).get("id") or "")
    if server is None or not id.isdigit() or is_planned(id):  # still being ordered
        return
    by = f"id: {id}" if task.given.get("id") or not server.get("name") else f"name: {server['name']}"
    path = task.params["root_password_file"]
    task.warn(
        f"server {id} ({server.get('name')}): its root password is not in root_password_file, {path} does "
        "not exist; the service shows a generated password once, when the server is ordered. Next: reset it "
        f"with hosting.cloud.server_password, options {by} and password_file: {path}"
    )


class ServerActionModule(CoreActionModule):
    """Restarts or reinstalls a server, with the options and the result of the module ``server``."""

    def generates_password(self, task: ModuleTask) -> bool:
        """Whether the service will generate a root password."""
        given = (task.params.get("password"), task.params.get("ssh_key_ids"))
        return self.name == "server_reinstall" and given == (None, None)

    def act(self, task: ModuleTask, request: Request) -> Json:
        if self.generates_password(task) and not task.params.get("root_password_file"):
            lost = "its new root password is generated and will not be kept"
            task.warn(f"{lost}. Next: give password, ssh_key_ids or root_password_file")
        return super().act(task, request)

    def given(self, task: ModuleTask, request: Request) -> Json:
        from pulumi_hosting.actions import resolve

        given, server = super().given(task, request) | _keys(task), RESOURCES["server"]
        if {"id", "name"} <= given.keys():
            name, found = given.pop("name"), resolve(request, server, id=str(given["id"])).values()
            if found["name"] != name:
                named = f"server {given['id']} is named {found['name']!r}, not {name!r}"
                raise ResourceError(f"{named}; nothing was sent. Next: correct the id")
        if self.name == "server_reinstall" and "erase" not in given:
            reason = "must be the id or the name of the server, to say that its disk may be erased"
            raise InvalidInput({"erase": reason}, server.title)
        return given

    def result(self, task: ModuleTask, done: ActionOutcome) -> Json:
        if done.note and task.check_mode:  # a real run has said it already
            task.warn(done.note)
        server = shown_fields(RESOURCES["server"].State, cast("Values", done.after or {}))
        result: Json = {"changed": done.changed, "server": server, "charge": None}
        if task.diff and done.changed:
            result["diff"] = {"before": {}, "after": {"state": task.params["state"]}}
        return result


class OfServerModule(ResourceModule):
    """An object of a server, which ``server_id`` or ``server_name`` names: reverse DNS of an address.

    In check mode the id of a server that an earlier task would order is not known. An empty ``server_id``
    then means that server, if it is the only one. Otherwise neither the price nor the rest of the limit is
    known.
    """

    def implied(self, task: ModuleTask) -> Json:
        server_id = self._server_id(task)
        return super().implied(task) | ({} if server_id is None else {"server_id": server_id})

    def known_result(self, task: ModuleTask, desired: Values) -> Json | None:
        if desired.get("server_id") or task.params.get("id"):
            return None
        if self.is_absent(task):
            return self.result(task, desired, apply.Outcome("unchanged", None, None, None))
        result = self.result(task, desired, apply.predict_create(self.resource, desired, ("server_id",)))
        return self.with_unknown_price(task, result) if self.charges else result

    def with_unknown_price(self, task: ModuleTask, result: Json) -> Json:
        """The result of a predicted purchase whose price is known only when the server exists. It is not
        shown as free."""
        limit = f"; {task.budget.limited.split()[0]} was not checked for it" if task.budget.limited else ""
        task.warn(f"{unknown_price(self.resource, ['server_id'])}{limit}")
        return {**result, "charge": {"amount": None, "currency": None}}

    def identity(self, task: ModuleTask, desired: Values) -> str:
        return str(desired.get("server_id") or "")

    def _server_id(self, task: ModuleTask) -> str | None:
        """The server's id; None where it is not known: in check mode, or where the object is to be absent."""
        try:
            if (id := server_id_of(task)) is not None:
                return id
        except NoSuchObject:
            if self.is_absent(task) and task.params.get("server_name"):  # a wrong id is no name
                return None
            raise
        if task.params.get("id"):
            return None
        if not task.check_mode:
            raise InvalidInput(
                {"server_id": "is empty; name the server by server_id or server_name"}, self.kind
            )
        return planned_server_id(task)


class ServerIpModule(OfServerModule):
    """Bought addresses have no names. ``id``, ``address`` or ``position`` (in the order of purchase)
    names the one that is meant."""

    def identity(self, task: ModuleTask, desired: Values) -> str:
        return f"{desired.get('server_id') or ''}/{task.params.get('position')}"

    def begin(self, task: ModuleTask, request: Request) -> Json | None:
        if task.params["position"] < 1:
            raise InvalidInput({"position": "must be 1 or more"}, self.resource.title)
        if (address := task.params.get("address")) and not passes(address_list.plain_address, address):
            raise InvalidInput({"address": "must be an IPv4 or IPv6 address"}, self.resource.title)
        return None

    def is_priced(self, task: ModuleTask, desired: Values) -> bool:
        # A server that does not exist yet has no quote: the purchase can be neither booked nor compared with
        # the limit.
        return super().is_priced(task, desired) and not is_planned(desired.get("server_id") or "")

    def finish(self, task: ModuleTask, request: Request, outcome: Outcome, result: Json) -> Json:
        is_new = outcome.action == "created" and is_planned((outcome.after or {}).get("server_id") or "")
        return self.with_unknown_price(task, result) if is_new else result

    def id_of(self, task: ModuleTask, request: Request, inputs: Any) -> str | None:
        if task.params.get("id") is not None:
            return str(task.params["id"])
        server_id = inputs.server_id

        every = listed(request, self.resource, server_id=server_id)
        bought = sorted(every, key=lambda state: int(state.id.rpartition("/")[2]))
        for index, state in enumerate(bought, start=1):
            request.ownership.add(f"{request.identity}#{index}", state.id)  # each has its place in the play
        if task.params.get("address"):
            return self._id_of_address(task, request, server_id, bought)
        position = task.params["position"]
        if len(bought) < position - 1:
            first = len(bought) + 1
            raise InvalidInput(
                {"position": f"the server has {len(bought)} bought addresses: declare {first} first"},
                self.resource.title,
            )
        return bought[position - 1].id if len(bought) >= position else None

    def _id_of_address(self, task: ModuleTask, request: Request, server_id: str, bought: list[Any]) -> str:
        address = task.params["address"]
        wanted = address_list.plain_address(address)
        for ip in address_list.of_server(request, server_id) or []:
            if address_list.plain_address(ip.address) == wanted:
                id = f"{server_id}/{ip.id}"
                if id in [state.id for state in bought]:
                    return id
                reason = "came with the server and cannot be released"
                raise ResourceError(f"{address} {reason}. Next: correct address")
        if self.is_absent(task):
            return ALREADY_ABSENT
        raise ResourceError(
            f"server {server_id} has no bought address {address}, and an address cannot be chosen. Next: "
            "leave address out to have one bought"
        )


def _keys(task: ModuleTask) -> Json:
    """The option ``ssh_key_ids`` as ids, if it has names. With a test key a name that is not found is passed
    over: the keys that it makes are not listed."""
    wanted = task.given.get("ssh_key_ids") or ()
    if all(map(id_number, wanted)):
        return {}
    if task.params["state"] == "absent":  # they do nothing then
        return {"ssh_key_ids": []}
    request = task.request("ssh_key", read_only=True, shared=True)
    ids, keys = list[str](), catalog_reads.ssh_keys(request)
    for name in wanted:
        found = [name] if id_number(name) else [str(key.id) for key in keys if key.name == name]
        if len(found) > 1:
            raise AmbiguousMatch(f"SSH key name {name!r}", found)
        if not found and not request.client.is_test_key:
            choices = ", ".join(sorted({key.name for key in keys}))
            which = f": choose one of {choices}" if choices else "; the account has none"
            reason = f"there is no SSH key named {name!r}{which}"
            raise InvalidInput({"ssh_key_ids": reason}, RESOURCES["server"].called(task.given))
        ids += found
    return {"ssh_key_ids": ids}


def _adopted(task: ModuleTask) -> Json:
    """The option ``adopt_id`` as an id, if it is a name. Where a server has the declared name already nothing
    is adopted, and the other name may be gone with the adoption."""
    wanted, name = task.given.get("adopt_id"), task.params.get("name")
    if wanted is None or id_number(wanted) is not None:
        return {}
    if task.params["state"] == "absent" or (name and _living(task, name)[1]):
        return {"adopt_id": None}
    try:
        return {"adopt_id": server_named(task, wanted, "adopt_id")}
    except NoSuchObject:
        reason = f"there is no server named {wanted!r} on this account"
        raise InvalidInput({"adopt_id": reason}, RESOURCES["server"].called(task.given)) from None


def server_id_of(task: ModuleTask) -> str | None:
    """The id of the server that ``server_id`` or ``server_name`` names; None if neither is given. A
    ``server_id`` that is not an id is a name."""
    id, name = task.params.get("server_id"), task.params.get("server_name")
    if id in (None, ""):
        return server_named(task, name, "server_name") if name else None
    return str(id) if id_number(id) is not None else server_named(task, id, "server_id")


def planned_server_id(task: ModuleTask) -> str | None:
    """That of the server which earlier tasks of a check run would order; None if they would order none, or
    several."""
    ordered = list(task.memory.planned_objects("server")[0])
    return ordered[0] if len(ordered) == 1 else None


def _living(task: ModuleTask, name: str) -> tuple[Request, State | None]:
    """The server of that name, as another task of the run has seen it, perhaps; None if there is none."""
    from pulumi_hosting.resources.server_powers import SERVER

    request = task.request(f"server/{name}", read_only=True, shared=True)
    return request, SERVER.find(request, declared(SERVER, {"name": name}).inputs)


def server_named(task: ModuleTask, name: str, option: str) -> str:
    """The id of the active server of that name, which ``option`` gives. Raises ``ResourceError`` if there is
    none, or more than one, and ``ResourceConflict`` if it has another name by now."""
    from pulumi_hosting.actions import resolve

    request, found = _living(task, name)
    if found is None:
        refuse_renamed(request, name, "done")
    elif not is_provisional(RESOURCES["server"], found):
        return str(found.id)
    request = task.request("server", read_only=True)
    return str(resolve(request, RESOURCES["server"], option, name=name).id)
