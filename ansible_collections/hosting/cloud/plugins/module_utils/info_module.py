# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that only read: the objects of a resource, or what one or two operations of the API return."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from .json_types import Json, Values
from .module import HostingModule, models_of, shown_fields
from .resource_module import models_read
from .secret_file import SecretFile
from .server_module import planned_server_id, server_id_of
from .task import ModuleTask

with suppress(ImportError):  # the task then says what is missing, and where
    from pydantic import BaseModel

    from pulumi_hosting.api.values import id_number
    from pulumi_hosting.client.exceptions import InvalidInput, NotFound, ServiceState
    from pulumi_hosting.exactly_once import catalog_reads
    from pulumi_hosting.planning import apply
    from pulumi_hosting.planning.resolve_names import resolved
    from pulumi_hosting.resources import RESOURCES
    from pulumi_hosting.resources.powers import listed
    from pulumi_hosting.session.request import Request


NO_ID = "must be a positive integer"


class ResourceInfoModule(HostingModule):
    """Lists the objects of ``kind`` under ``result``. The option ``id`` names one; the others filter."""

    def __init__(self, kind: str, result: str, options: Values, **rules: Any) -> None:
        super().__init__(options, **rules)
        self.kind, self.result = kind, result

    def load(self) -> list[type[BaseModel]]:
        return models_read(RESOURCES[self.kind])

    def work(self, task: ModuleTask) -> Json:
        resource = RESOURCES[self.kind]
        request = task.request(self.kind, read_only=True)
        if (id := task.params.get("id")) is not None:
            if id_number(id) is None:
                raise InvalidInput({"id": NO_ID}, resource.title)
            states = [*filter(None, [resource.read(request, str(id))])]
        else:
            filters = [name for name in self.options if name not in ("id", "details", "live")]
            states = list(listed(request, resource, **task.chosen(filters)))
        shown = [shown_fields(resource.State, apply.shown(resource, state)) for state in states]
        return {"changed": False, self.result: [self.shown(task, request, values) for values in shown]}

    def shown(self, task: ModuleTask, request: Request, values: Json) -> Json:
        """One object, as the result shows it."""
        return values


class ServerInfoModule(ResourceInfoModule):
    """With ``details``, all that the service shows of each server is read too, with one request per server;
    with ``live`` its present state, with one expensive request per server."""

    def shown(self, task: ModuleTask, request: Request, values: Json) -> Json:
        details = live = None
        if task.params["details"]:
            details = ask(request, "getServer", [values["id"]], {})
        if task.params["live"]:
            try:
                live = ask(request, "getServerStatus", [values["id"]], {})
            except ServiceState as error:  # an imported server has no record in the panel
                task.warn(f"server {values['id']}: {error}")
        return {**values, "details": details, "live": live}


class LookupInfoModule(HostingModule):
    """Shows what a ``lookup`` finds under ``result``.

    - ``one``: the lookup that is used instead if the option ``id`` names one item of the list.
    - ``path``: the options that hold the ids in the operation's path.
    """

    id_option: ClassVar = "id"

    def __init__(
        self,
        result: str,
        lookup: str,
        options: Values,
        *,
        one: str | None = None,
        path: tuple[str, ...] = (),
        **rules: Any,
    ) -> None:
        super().__init__(options, **rules)
        self.result, self.lookup, self.one, self.path = result, lookup, one, path

    def load(self) -> list[type[BaseModel]]:
        from pulumi_hosting.schema.lookups import LOOKUPS

        return models_of(LOOKUPS[name].operation for name in (self.lookup, self.one) if name)

    def work(self, task: ModuleTask) -> Json:
        return {"changed": False, self.result: self.found(task, task.request(self.result, read_only=True))}

    def found(self, task: ModuleTask, request: Request) -> Any:
        if self.one is None or task.params.get(self.id_option) is None:
            query = self.query(task) | self.named(task, request)
            found = ask(request, self.lookup, self.ids(task, request), query)
            name = None if "name" in query else task.params.get("name")  # else the service looks for it
            if name is None:
                return found
            return [item for item in found if _folded(item["name"]) == name.strip().casefold()]
        try:
            return [ask(request, self.one, [task.params[self.id_option]], {}, self.id_option)]
        except NotFound:
            return []

    def ids(self, task: ModuleTask, request: Request) -> list[Any]:
        return [task.params[name] for name in self.path]

    def named(self, task: ModuleTask, request: Request) -> Json:
        """The id of the location, or of the tariff, that an option names."""
        if (wanted := task.params.get("location")) is not None:
            rows = ask(request, "getLocations", [], {})
            ids = [
                row["id"] for row in rows if wanted.casefold() in (_folded(row["code"]), _folded(row["name"]))
            ]
            if len(ids) != 1:
                choices = ", ".join(str(row["code"]) for row in rows)
                reason = f"there is no location {wanted!r}: choose one of {choices}"
                raise InvalidInput({"location": reason}, self.result.replace("_", " "))
            return {"location_id": ids[0]}
        given = task.chosen({"tariff"} & self.options.keys())
        found, failures = resolved(lambda: request, RESOURCES["server"], given, {}) if given else ({}, {})
        if failures:
            raise InvalidInput(failures, self.result.replace("_", " "))
        return found

    def query(self, task: ModuleTask) -> Json:
        from pulumi_hosting.schema.lookups import LOOKUPS

        names = {field.name for field in LOOKUPS[self.lookup].arguments} - {*self.path}
        return task.chosen(name for name in self.options if name in names)


class InvoiceInfoModule(LookupInfoModule):
    """With ``pdf``, the invoice of the ``id`` is written to a file. Its items are shown as ``lines``, since
    ``items`` is a method in templates."""

    def found(self, task: ModuleTask, request: Request) -> Any:
        file = SecretFile("pdf", task.params["pdf"]) if task.params.get("pdf") else None
        if file is not None:
            file.must_be_writable()
        found = [
            {"lines" if name == "items" else name: value for name, value in item.items()}
            for item in super().found(task, request)
        ]
        if file is not None and found and not task.check_mode:
            file.path.write_bytes(request.client.invoices.pdf(int(task.params["id"])))
        return found


class QuoteInfoModule(LookupInfoModule):
    """The price of an order. A tariff that is not there is refused with those that are."""

    def found(self, task: ModuleTask, request: Request) -> Any:
        try:
            return super().found(task, request)
        except NotFound:
            id, tariffs = task.params["tariff_id"], catalog_reads.tariffs(request)
            if id is None or id in tariffs:
                raise
        raise InvalidInput({"tariff_id": catalog_reads.unknown_tariff(id, tariffs)}, "the quote")


class ServerIpInfoModule(LookupInfoModule):
    """The addresses of one server, including its primary ones, and the price of another one."""

    def work(self, task: ModuleTask) -> Json:
        request = task.request(self.result, read_only=True)
        ids = self.ids(task, request)
        if ids == [None] and task.check_mode and task.memory.planned_objects("server")[0]:  # one of several
            return {"changed": False, self.result: [], "quote": None}
        quote = ask(request, "getServerIpQuote", ids, {}) if task.params["quote"] else None
        found = ask(request, self.lookup, ids, {})
        # The id that the modules server_ip and ptr use.
        shown = [{"server_id": str(ids[0]), **item, "id": f"{ids[0]}/{item['id']}"} for item in found]
        return {"changed": False, self.result: shown, "quote": quote}

    def ids(self, task: ModuleTask, request: Request) -> list[Any]:
        return [server_id_of(task) or (planned_server_id(task) if task.check_mode else None)]


class DeliveryInfoModule(LookupInfoModule):
    """The deliveries of one webhook subscription, or the one that ``delivery_id`` names."""

    id_option: ClassVar = "delivery_id"

    def ids(self, task: ModuleTask, request: Request) -> list[Any]:
        from pulumi_hosting.actions import resolve

        return [resolve(request, RESOURCES["webhook_subscription"], **task.chosen(("id", "url"))).id]


def _folded(text: str | None) -> str:
    return (text or "").casefold()


def ask(request: Request, name: str, ids: list[Any], query: Values, option: str = "id") -> Any:
    """What the lookup finds: every field as a plain value, null where it is absent, without secrets.
    ``option``: the one that names the id."""
    from pulumi_hosting.schema import lookups
    from pulumi_hosting.schema.fields import shown

    lookup = lookups.LOOKUPS[name]
    for id in ids:
        if id_number(id) is None:
            raise InvalidInput({option: NO_ID})
    return shown(lookups.ask(request.client, lookup, ids, query), lookup.value)
