# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that bring one object to a wished state, and modules that list such objects.

The options a task wrote become a declaration; the core's engine finds, plans and applies. What a resource is, what it costs to change and what
must be waited for is known to the core alone. What differs per resource in Ansible stands in the small classes below: nothing is remembered
here from one run to the next, so each object needs something in the play that tells which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ansible_collections.hosting.cloud.plugins.module_utils.files import SecretFile
from ansible_collections.hosting.cloud.plugins.module_utils.planned import is_planned
from ansible_collections.hosting.cloud.plugins.module_utils.runner import (
    WAIT_OPTIONS,
    Call,
    Done,
    Module,
    charge,
    context_of,
    limited,
)

if TYPE_CHECKING:
    from pulumi_hosting.planning.engine import ApplyOptions, Outcome
    from pulumi_hosting.resources.base import Resource, State
    from pulumi_hosting.session.context import Context

STATE = {"type": "str", "choices": ["present", "absent"], "default": "present"}


class NounModule(Module):
    """Brings one object of ``kind`` to its ``state``. ``clears``: what an explicit null of an option stands for."""

    shared: ClassVar[Mapping[str, Any]] = {**WAIT_OPTIONS, "state": STATE}

    def __init__(self, kind: str, options: Mapping[str, Any], *, clears: Mapping[str, Any] | None = None, **rules: Any) -> None:
        super().__init__(options, **rules)
        self.kind = kind
        self.clears = clears or {}

    # --- the way of every resource

    def work(self, call: Call) -> dict[str, Any]:
        from pulumi_hosting.resources import RESOURCES

        resource = RESOURCES[self.kind]
        desired = self.desired(call, resource)
        context = context_of(call, f"{self.kind}/{self.identity(call, desired)}", read_only=call.check_mode)
        return self.bring(call, context, resource, desired)

    def bring(self, call: Call, context: Context, resource: Resource[Any, Any], desired: dict[str, Any]) -> dict[str, Any]:
        """Bring the account to the ``wish``, or to being without it."""
        return self.result(call, resource, desired, self.ensure(call, context, resource, desired, call.params.get("id")))

    def identity(self, call: Call, desired: Mapping[str, Any]) -> str:
        """What names the declaration among those of its kind."""
        return str(call.params.get("name") or "")

    def desired(self, call: Call, resource: Resource[Any, Any]) -> dict[str, Any]:
        """The inputs that the task wrote. A null is a wish only where it empties something; elsewhere it is how templates leave a thing
        out."""
        given = {name: call.params.get(name) for name in resource.Inputs.model_fields if name in call.written}
        nulls = {name: self.clears[name] for name, value in given.items() if value is None and name in self.clears}
        return {name: value for name, value in given.items() if value is not None} | nulls

    def ensure(
        self,
        call: Call,
        context: Context,
        resource: Resource[Any, Any],
        desired: Mapping[str, Any],
        id: str | None,
        absent: bool | None = None,
    ) -> Outcome:
        from ansible_collections.hosting.cloud.plugins.module_utils import effects
        from pulumi_hosting.planning import engine

        checked(resource, desired)
        declared = engine.declared(resource, desired)
        leaves = call.params["state"] == "absent" if absent is None else absent
        way = engine.ensure_absent if leaves else engine.ensure
        terms = self.terms(call, context, desired)

        def save(made: State) -> None:
            created = engine.Outcome("created", None, engine.shown(resource, made), made)
            call.hide(str(value) for name, value in made.values().items() if name in made.secret_fields() and value)
            call.done = Done(_exists(resource, made), lambda: self.result(call, resource, desired, created))
            terms.save(made)

        outcome = way(context, resource, declared.inputs, id=id, terms=replace(terms, save=save))
        if outcome.changed:
            words = (
                _exists(resource, outcome.state)
                if outcome.action == "created" and outcome.state
                else f"the {resource.title} was {outcome.action}"
            )
            call.done = Done(words, lambda: self.result(call, resource, desired, outcome))
        if call.planned is not None:
            effects.of_outcome(call.planned, context, resource, declared.inputs, outcome)
        if outcome.takeover is not None:
            call.warn(outcome.takeover.announcement(context.client.service_now()))
        if outcome.state is not None:
            values, secret = outcome.state.values(), outcome.state.secret_fields()
            call.hide(str(value) for name, value in values.items() if name in secret and value)
        for remark in outcome.diff.remarks:
            call.warn(remark)
        return outcome

    def terms(self, call: Call, context: Context, desired: Mapping[str, Any]) -> ApplyOptions:
        from pulumi_hosting.planning.engine import ApplyOptions

        priced = call.check_mode or call.params.get("max_charge") is not None
        return ApplyOptions(call.check_mode, bool(call.params["wait"]), priced, limited(call, context.identity), context.save)

    # --- what is printed

    def result(self, call: Call, resource: Resource[Any, Any], desired: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
        """One shape on every path."""
        result: dict[str, Any] = {
            "changed": outcome.changed,
            self.kind: None if outcome.after is None else shape(resource, outcome.after),
        }
        if self.charges:
            result["charge"] = self.charged(call, resource, outcome)
            if outcome.state is not None and outcome.action == "created" and result["charge"] is None:
                # Nothing was bought by this task: an earlier run had, or another host at the same moment.
                return {**result, "changed": False}
        if call.wants_diff and outcome.changed:
            result["diff"] = diff(resource, desired, outcome)
        return result

    def charged(self, call: Call, resource: Resource[Any, Any], outcome: Outcome) -> dict[str, Any] | None:
        """What this task's own request charged, or would charge. ``call.movement`` then names it."""
        if outcome.action != "created" or outcome.takeover is not None:
            return None
        after = outcome.after or {}
        if outcome.state is None:
            cost = outcome.cost
            # Several hosts would make it once; after a deletion it would be made again.
            deletions = [effect for effect in (call.planned.effects if call.planned else ()) if effect[0] == "delete"]
            call.movement = f"{self.kind}/{self.identity(call, after)}/{len(deletions)}"
            return charge(str(cost.amount), cost.currency) if cost else None
        call.movement = f"{self.kind}/{after.get('invoice_id') or after['id']}"
        if after.get("charged") is None and after.get("mode") != "test" and call.lost:
            return self.charged_unseen(call, outcome)
        if call.replayed and not call.lost:
            return None  # another run ordered it at the same moment
        return charge(after.get("charged"), after.get("currency") or (outcome.cost.currency if outcome.cost else None))

    def charged_unseen(self, call: Call, outcome: Outcome) -> dict[str, Any]:
        """What a purchase charged whose answer was lost: as the newest invoice of the object says."""
        from pulumi_hosting.client.exceptions import ApiError

        after = outcome.after or {}
        field = "domain_id" if self.kind == "domain" else "server_id"
        id = after.get("server_id") or after["id"]
        try:
            for invoice in islice(call.connect(False).invoices.list(), 20):
                if invoice.paid_at is not None and any(str(getattr(item, field)) == str(id) for item in invoice.items or ()):
                    call.movement = f"{self.kind}/{invoice.id}"
                    return {"amount": str(invoice.amount), "currency": invoice.currency}
        except ApiError:
            pass  # without the scope invoices:read
        call.warn(
            f"the answer of the order was lost, and its invoice cannot be seen: what {self.kind} {after['id']} cost is not known here"
        )
        return {"amount": None, "currency": None}


class ServerModule(NounModule):
    """``started`` and ``stopped`` are ``present`` with a power; ``restarted`` and ``reinstalled`` act on a server that exists."""

    shared: ClassVar[Mapping[str, Any]] = {
        **NounModule.shared,
        "state": {**STATE, "choices": ["present", "absent", "started", "stopped", "restarted", "reinstalled"]},
    }

    def desired(self, call: Call, resource: Resource[Any, Any]) -> dict[str, Any]:
        power = {"started": "running", "stopped": "stopped"}.get(call.params["state"])
        return super().desired(call, resource) | ({"power": power} if power else {})

    def bring(self, call: Call, context: Context, resource: Resource[Any, Any], desired: dict[str, Any]) -> dict[str, Any]:
        path, state = call.params.get("root_password_file"), call.params["state"]
        file = SecretFile("root_password_file", path) if path and state != "absent" else None
        if file is not None:
            file.must_be_writable()
        # The moment it was shown: whatever fails afterwards, it is never shown again.
        context.save = lambda shown: self._keep(call, context, file, shown)
        acted = {"restarted": "server_restart", "reinstalled": "server_reinstall"}.get(state)
        if acted is not None:
            return self._act(call, context, resource, acted, file)
        outcome = self.ensure(call, context, resource, desired, call.params.get("id"))
        return self._with_file(call, file, self.result(call, resource, desired, outcome), outcome.action == "created")

    @staticmethod
    def _with_file(call: Call, file: SecretFile | None, result: dict[str, Any], writes: bool) -> dict[str, Any]:
        """With the file in the diff, where the task writes one."""
        shown = result.get("diff")
        if file is None or not writes or shown is None:
            return result
        return {**result, "diff": {**shown, "after": {**shown["after"], "root_password_file": str(file.path)}}}

    @staticmethod
    def _keep(call: Call, context: Context, file: SecretFile | None, state: Any) -> None:
        """The password that the service showed, if it did."""
        password = state.values().get("root_password")
        if password and password != call.params.get("password"):
            call.hide([str(password)])
            if file is not None:
                file.keep(str(password), context.mode, call.warn)

    def _act(self, call: Call, context: Context, resource: Resource[Any, Any], kind: str, file: SecretFile | None) -> dict[str, Any]:
        from ansible_collections.hosting.cloud.plugins.module_utils import effects
        from pulumi_hosting.actions import ACTIONS, act, check, resolve
        from pulumi_hosting.client.exceptions import InvalidInput
        from pulumi_hosting.session.errors import ResourceError

        action = ACTIONS[kind]
        given = {field: value for field in action.Inputs.model_fields if (value := call.params.get(field)) is not None}
        if {"id", "name"} <= given.keys():
            name, found = given.pop("name"), resolve(context, resource, id=str(given["id"])).values()
            if found["name"] != name:
                raise ResourceError(
                    f"server {given['id']} is named {found['name']!r}, not {name!r}; nothing was sent. Next: correct the id"
                )
        if kind == "server_reinstall" and "erase" not in given:
            raise InvalidInput({"erase": "must be the id or the name of the server, to say that its disk may be erased"}, resource.title)
        generates = kind == "server_reinstall" and not given.keys() & {"password", "ssh_key_ids"}
        if generates and file is None:
            call.warn("its new root password is generated and will not be kept. Next: give password, ssh_key_ids or root_password_file")
        deed = act(context, action, check(action, given), dry_run=call.check_mode)
        if call.planned is not None:
            effects.of_deed(call.planned, kind, deed)
        if deed.note and call.check_mode:  # for real it is said when it is done
            call.warn(deed.note)
        result: dict[str, Any] = {
            "changed": deed.changed,
            "server": shape(resource, cast("Mapping[str, Any]", deed.after or {})),
            "charge": None,
        }
        if call.wants_diff and result["changed"]:
            result["diff"] = {"before": {}, "after": {"state": call.params["state"]}}
        return self._with_file(call, file, result, generates)


class OfServerModule(NounModule):
    """An object of a server, which is named by ``server_id`` or ``server_name``.

    In check mode the id of a server that an earlier task would order is not known. An empty ``server_id`` then means that server, if there
    is one alone; of several it cannot be told which, so that neither price nor limit is known.
    """

    def work(self, call: Call) -> dict[str, Any]:
        from pulumi_hosting.planning import engine
        from pulumi_hosting.resources import RESOURCES

        resource = RESOURCES[self.kind]
        desired = self.desired(call, resource)
        server_id = self._server(call, desired)
        if server_id is None and not call.params.get("id"):
            if call.params["state"] == "absent":
                return self.result(call, resource, desired, engine.Outcome("unchanged", None, None, None))
            outcome = engine.predict_create(resource, desired, ("server_id",))
            result = self.result(call, resource, desired, outcome)
            return self.of_unknown_price(call, result) if self.charges else result
        if server_id is not None:
            desired["server_id"] = server_id
        context = context_of(call, f"{self.kind}/{self.identity(call, desired)}", read_only=call.check_mode)
        return self.bring(call, context, resource, desired)

    def of_unknown_price(self, call: Call, result: dict[str, Any]) -> dict[str, Any]:
        """A predicted purchase whose price is not known before the server is there. It is not shown as free."""
        limit = "" if call.params.get("max_charge") is None else "; max_charge was not checked for it"
        call.warn(f"price not known yet: the {self.kind.replace('_', ' ')} is paid for what is left of its server's period{limit}")
        return {**result, "charge": {"amount": None, "currency": None}}

    def identity(self, call: Call, desired: Mapping[str, Any]) -> str:
        return str(desired.get("server_id") or "")

    def _server(self, call: Call, desired: Mapping[str, Any]) -> str | None:
        """The server's id; None where there is none, in check mode or where nothing is to be left anyway."""
        from pulumi_hosting.client.exceptions import InvalidInput
        from pulumi_hosting.session.errors import NoSuchObject

        if desired.get("server_id") not in (None, ""):
            return str(desired["server_id"])
        if name := call.params.get("server_name"):
            try:
                return server_named(call, name)
            except NoSuchObject:
                if call.params["state"] == "absent":
                    return None
                raise
        if call.params.get("id"):
            return None
        if call.planned is None:
            raise InvalidInput({"server_id": "is empty; name the server by server_id or server_name"}, self.kind)
        ordered = list(call.planned.objects("server")[0])
        return ordered[0] if len(ordered) == 1 else None


class ServerIpModule(OfServerModule):
    """Bought addresses have no names: the one that is meant is told by its id, by itself, or by its place in the order of purchase."""

    def identity(self, call: Call, desired: Mapping[str, Any]) -> str:
        return f"{desired.get('server_id') or ''}/{call.params.get('position')}"

    def bring(self, call: Call, context: Context, resource: Resource[Any, Any], desired: dict[str, Any]) -> dict[str, Any]:
        from pulumi_hosting.client.exceptions import InvalidInput
        from pulumi_hosting.exactly_once import addresses
        from pulumi_hosting.planning import engine
        from pulumi_hosting.planning.engine import Outcome
        from pulumi_hosting.session.errors import ResourceError

        params = call.params
        id, position = params.get("id"), params["position"]
        if position < 1:
            raise InvalidInput({"position": "must be 1 or more"}, resource.title)
        if id is None:
            desired = dict(checked(resource, desired))
            bought = sorted(
                engine.listed(context, resource, server_id=desired["server_id"]), key=lambda state: int(state.id.rpartition("/")[2])
            )
            if params.get("address"):
                id = next((state.id for state in bought if _same_address(state.address, params["address"])), None)
                every = addresses.of_server(context, desired["server_id"]) or []
                if id is None and addresses.pick(every, params["address"]) is not None:
                    raise ResourceError(f"{params['address']} came with the server and cannot be released. Next: correct address")
                if id is None and params["state"] == "absent":
                    return self.result(call, resource, desired, Outcome("unchanged", None, None, None))
                if id is None:
                    raise ResourceError(
                        f"server {desired['server_id']} has no bought address {params['address']}, and an address cannot be chosen. "
                        "Next: leave address out to have one bought"
                    )
            elif len(bought) >= position:
                id = bought[position - 1].id
            elif len(bought) < position - 1:
                raise InvalidInput(
                    {"position": f"the server has {len(bought)} bought addresses; number {len(bought) + 1} comes first"}, resource.title
                )
            for index, state in enumerate(bought, start=1):
                context.ownership.add(f"{context.identity}#{index}", state.id)  # they are explained: each has its place
        outcome = self.ensure(call, context, resource, desired, id)
        result = self.result(call, resource, desired, outcome)
        is_new = outcome.action == "created" and is_planned(desired.get("server_id") or "")
        return self.of_unknown_price(call, result) if is_new else result

    def terms(self, call: Call, context: Context, desired: Mapping[str, Any]) -> ApplyOptions:
        terms = super().terms(call, context, desired)
        # A server that is not there yet has no quote, so the purchase can neither be booked nor compared with the limit.
        return replace(terms, priced=False) if is_planned(desired.get("server_id") or "") else terms


class WebhookSubscriptionModule(NounModule):
    """``secret_file`` tells whether the signing secret is known; where it is not, a new one is made."""

    def identity(self, call: Call, desired: Mapping[str, Any]) -> str:
        return str(desired.get("url") or "")

    def bring(self, call: Call, context: Context, resource: Resource[Any, Any], desired: dict[str, Any]) -> dict[str, Any]:
        path = call.params.get("secret_file")
        if not path or call.params["state"] == "absent":
            return super().bring(call, context, resource, desired)
        file = SecretFile("secret_file", path)
        file.must_be_writable()
        lacks = not file.exists
        outcome = self.ensure(call, context, resource, desired, call.params.get("id"))
        result = self.result(call, resource, desired, outcome)
        if not (lacks or outcome.action in ("created", "replaced")):
            return result
        if outcome.action not in ("created", "replaced"):
            call.warn(f"{file.path} is not there: a new secret is made, and the old one stops at once")
        if outcome.state is not None and not call.check_mode:
            state = outcome.state
            if outcome.action not in ("created", "replaced"):
                state = self._rotated(context, resource, state)
            secret = state.values().get("secret")
            call.hide([str(secret)] if secret else [])
            file.keep(secret, context.mode, call.warn)
        if call.wants_diff:
            shown = result.get("diff") or {"before": {}, "after": {}}
            result["diff"] = {"before": shown["before"], "after": {**shown["after"], "secret_file": path}}
        return {**result, "changed": True}

    @staticmethod
    def _rotated(context: Context, resource: Resource[Any, Any], state: Any) -> Any:
        from pulumi_hosting.planning import engine

        declared = engine.declared(resource, {"rotation": "the secret is not known here"})
        return engine.update(context, resource, state, declared.inputs, frozenset({"rotation"}))


class TransferModule(NounModule):
    """A domain that comes from another registrar: declared with its auth code, and never given up by this module."""

    shared: ClassVar[Mapping[str, Any]] = WAIT_OPTIONS

    def ensure(
        self,
        call: Call,
        context: Context,
        resource: Resource[Any, Any],
        desired: Mapping[str, Any],
        id: str | None,
        absent: bool | None = None,
    ) -> Outcome:
        return super().ensure(call, context, resource, desired, id, False)


class PtrModule(OfServerModule):
    """Reverse DNS: the address is the key, the server's primary one where none is named."""


# --- modules that list -------------------------------------------------------------------------------------------------------


class NounInfoModule(Module):
    """Lists objects of ``kind`` under ``result``. ``id`` names one; the other options filter."""

    def __init__(self, kind: str, result: str, options: Mapping[str, Any], **rules: Any) -> None:
        super().__init__(options, **rules)
        self.kind, self.result = kind, result

    def work(self, call: Call) -> dict[str, Any]:
        from pulumi_hosting.client.exceptions import InvalidInput
        from pulumi_hosting.planning import engine
        from pulumi_hosting.resources import RESOURCES

        resource = RESOURCES[self.kind]
        context = context_of(call, self.kind, read_only=True)
        filters = {name: value for name in self.options if (value := call.params.get(name)) is not None and name in self.filters}
        if (id := call.params.get("id")) is not None:
            if not re.fullmatch(r"[1-9][0-9]{0,18}", str(id), re.ASCII):
                raise InvalidInput({"id": "must be an id: a positive integer"}, resource.title)
            found = resource.read(context, str(id))
            states = [] if found is None else [found]
        else:
            states = list(engine.listed(context, resource, **filters))
        return {
            "changed": False,
            self.result: [self.shown(call, context, shape(resource, engine.shown(resource, state))) for state in states],
        }

    @property
    def filters(self) -> frozenset[str]:
        return frozenset(self.options) - {"id"}

    def shown(self, call: Call, context: Context, values: dict[str, Any]) -> dict[str, Any]:
        return values


class ServerInfoModule(NounInfoModule):
    """With ``live``, each server is asked for its present state: one expensive request per server."""

    @property
    def filters(self) -> frozenset[str]:
        return super().filters - {"live"}

    def shown(self, call: Call, context: Context, values: dict[str, Any]) -> dict[str, Any]:
        from pulumi_hosting.client.exceptions import ServiceState
        from pulumi_hosting.schema.fields import shown
        from pulumi_hosting.schema.lookups import LOOKUPS

        live = None
        if call.params["live"]:
            try:
                live = shown(context.client.servers.status(int(values["id"])), LOOKUPS["getServerStatus"].value)
            except ServiceState as error:  # an imported server has no record in the panel
                call.warn(f"server {values['id']}: {error}")
        return {**values, "live": live}


# --- parts -------------------------------------------------------------------------------------------------------------------


def _exists(resource: Resource[Any, Any], made: State) -> str:
    """What was made, in words."""
    kind, colon, number = made.id.partition(":")
    if not colon:
        return f"{resource.title} {made.id} exists"
    what = f"order {number}" if kind == "order" else f"an address for server {made.values().get('server_id')}"
    return f"{what} is placed" if kind == "order" else f"{what} is ordered"


def shape(resource: Resource[Any, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """All fields that may be shown, null where nothing is known."""
    hidden = resource.State.secret_fields()
    return {name: values.get(name) for name in resource.State.model_fields if name not in hidden}


def diff(resource: Resource[Any, Any], given: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """What was mentioned, before and after: the same in check mode as for real, in one order, without secrets."""
    hidden = resource.Inputs.secret_fields()
    desired = {name: value for name, value in given.items() if name not in hidden}
    changes = {change.field: change for change in outcome.diff.changes if change.field not in hidden}
    known = outcome.before or {}
    observed = {name: known[name] for name in desired if name not in changes and known.get(name) is not None}
    if outcome.action == "created":
        before, after = {}, desired
    elif outcome.action == "deleted":
        before, after = shape(resource, known), {}
    else:
        gone = {"id": known.get("id")} if outcome.action == "replaced" else {}
        before = {**gone, **observed, **{name: change.before for name, change in changes.items()}}
        after = {**observed, **{name: change.after for name, change in changes.items()}}
    return {"before": dict(sorted(before.items())), "after": dict(sorted(after.items()))}


def checked(resource: Resource[Any, Any], desired: Mapping[str, Any]) -> Mapping[str, Any]:
    """The wish in normal form. Raises ``InvalidInput``."""
    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.planning import engine

    declared = engine.declared(resource, desired)
    if declared.failures:
        raise InvalidInput(declared.failures, resource.title)
    return declared.values


def server_named(call: Call, name: str) -> str:
    """The id of the living server of that name. Raises ``ResourceError`` where there is none, or are several."""
    from pulumi_hosting.actions import resolve
    from pulumi_hosting.resources import RESOURCES

    return str(resolve(context_of(call, "server", read_only=True), RESOURCES["server"], name=name).id)


def _same_address(one: str | None, other: str) -> bool:
    from pulumi_hosting.exactly_once.addresses import plain_address

    return one is not None and plain_address(one) == plain_address(other)
