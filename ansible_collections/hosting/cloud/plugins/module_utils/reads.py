# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Modules that read what no resource stands for: one operation of the API each, or two, a list and one of its items by id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.hosting.cloud.plugins.module_utils.files import must_be_writable
from ansible_collections.hosting.cloud.plugins.module_utils.nouns import server_named
from ansible_collections.hosting.cloud.plugins.module_utils.runner import Call, Module, context_of

if TYPE_CHECKING:
    from pulumi_hosting.session.context import Context


class ReadModule(Module):
    """Shows what ``lookup`` of the core finds under ``result``. ``one``: the lookup that answers where ``id`` names one item of the list;
    ``path``: the options that stand for the ids in the operation's path."""

    def __init__(
        self, result: str, lookup: str, options: Mapping[str, Any], *, one: str | None = None, path: tuple[str, ...] = (), **rules: Any
    ) -> None:
        super().__init__(options, **rules)
        self.result, self.lookup, self.one, self.path = result, lookup, one, path

    def work(self, call: Call) -> dict[str, Any]:
        context = context_of(call, self.result, read_only=True)
        return {"changed": False, self.result: self.found(call, context)}

    def found(self, call: Call, context: Context) -> Any:
        from pulumi_hosting.client.exceptions import NotFound

        if self.one is None or call.params.get("id") is None:
            return ask(context, self.lookup, self.ids(call, context), self.query(call))
        try:
            return [ask(context, self.one, [call.params["id"]], {})]
        except NotFound:
            return []

    def ids(self, call: Call, context: Context) -> list[Any]:
        return [call.params[name] for name in self.path]

    def query(self, call: Call) -> dict[str, Any]:
        from pulumi_hosting.schema.lookups import LOOKUPS

        fields = [field.name for field in LOOKUPS[self.lookup].arguments if field.name in self.options and field.name not in self.path]
        return {name: call.params[name] for name in fields if call.params.get(name) is not None}


class InvoiceInfoModule(ReadModule):
    """With ``pdf``, the invoice that ``id`` names is written to a file. Its items are ``lines``: in a template ``items`` is a method."""

    def found(self, call: Call, context: Context) -> Any:
        path = call.params.get("pdf")
        if path:
            must_be_writable("pdf", Path(path))
        found = [{"lines" if name == "items" else name: value for name, value in item.items()} for item in super().found(call, context)]
        if path and found and not call.check_mode:
            Path(path).write_bytes(context.client.invoices.pdf(int(call.params["id"])))
        return found


class ServerIpInfoModule(ReadModule):
    """The addresses of one server, primary ones too, and what another one would cost."""

    def work(self, call: Call) -> dict[str, Any]:
        context = context_of(call, self.result, read_only=True)
        ids = self.ids(call, context)
        quote = ask(context, "getServerIpQuote", ids, {}) if call.params["quote"] else None
        found = ask(context, self.lookup, ids, {})
        # One id everywhere: what server_ip and ptr show and take.
        shown = [{"server_id": str(ids[0]), **item, "id": f"{ids[0]}/{item['id']}"} for item in found]
        return {"changed": False, self.result: shown, "quote": quote}

    def ids(self, call: Call, context: Context) -> list[Any]:
        from pulumi_hosting.client.exceptions import InvalidInput

        id = call.params["server_id"] or server_named(call, call.params["server_name"])
        if not str(id).isdigit():
            raise InvalidInput({"server_id": "must be an id: a positive integer"})
        return [id]


class DeliveryInfoModule(ReadModule):
    """The deliveries of one webhook subscription, or the one that ``delivery_id`` names."""

    def ids(self, call: Call, context: Context) -> list[Any]:
        from pulumi_hosting.actions import resolve
        from pulumi_hosting.resources import RESOURCES

        named = {name: call.params[name] for name in ("id", "url") if call.params[name] is not None}
        return [resolve(context, RESOURCES["webhook_subscription"], **named).id]

    def found(self, call: Call, context: Context) -> Any:
        from pulumi_hosting.client.exceptions import NotFound

        if call.params["delivery_id"] is None:
            return ask(context, self.lookup, self.ids(call, context), self.query(call))
        try:
            return [ask(context, "getWebhookDelivery", [call.params["delivery_id"]], {})]
        except NotFound:
            return []


def ask(context: Context, name: str, ids: list[Any], query: Mapping[str, Any]) -> Any:
    """What the lookup finds, every field in plain values, null where it is absent, without secrets."""
    from pulumi_hosting.client.exceptions import InvalidInput
    from pulumi_hosting.schema import lookups
    from pulumi_hosting.schema.fields import shown

    lookup = lookups.LOOKUPS[name]
    for id in ids:
        if not str(id).isdigit():
            raise InvalidInput({"id": "must be an id: a positive integer"})
    return shown(lookups.ask(context.client, lookup, ids, query), lookup.value)
