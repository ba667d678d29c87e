"""Restarting a server, and installing it again (API document, "Servers": ``actions/power``,
``actions/reinstall``).

Both are explicit: whoever asks for them wants them to happen, each time. Neither has an idempotency key, so
neither is sent twice by one run, and a lost answer is reported for a person to look at.
"""

from functools import partial
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from pulumi_hosting.actions.action import Action, ActionPlan, OfServer, answer_may_be_lost, resolve
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import ApiError, InvalidInput, InvalidResponse
from pulumi_hosting.exactly_once import catalog_reads
from pulumi_hosting.planning.check import declared
from pulumi_hosting.resources.base import IdText
from pulumi_hosting.resources.server_fields import ServerState, sorted_ids
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.request import Request

_RESTART_SECONDS = 60.0


class ServerRestart(Action[OfServer, ServerState]):
    kind: ClassVar[str] = "server_restart"
    title: ClassVar[str] = "restart of a server"
    result: ClassVar[str] = "server"
    scopes: ClassVar = ("servers:read", "servers:manage")

    def plan(self, request: Request, inputs: OfServer) -> ActionPlan:
        state = resolve(request, SERVER, id=inputs.id, name=inputs.name)
        _refuse_suspended(state, "restarted")
        running = {"status": "active", "power": "running"} if state.status in ("active", "stopped") else {}
        after = state.model_copy(update=running)
        return ActionPlan(True, state.shown(), after.shown(), target=(SERVER, state), data=state)

    def perform(self, request: Request, inputs: OfServer, plan: ActionPlan) -> ServerState:
        state: ServerState = plan.data
        restart = partial(request.client.servers.power, int(state.id), action="restart")
        lost = (
            f"whether server {state.id} was restarted is not known; nothing was repeated. Next: look at its "
            "uptime before running again"
        )
        try:
            with answer_may_be_lost(lost):
                request.when_free(f"server {state.id}", restart)
        finally:
            request.reads.forget("servers")
        after = SERVER.until(
            request,
            state,
            lambda server: server.status in ("active", "pending_cancel"),
            seconds=_RESTART_SECONDS,
        )
        return after.model_copy(update={"mode": state.mode, "power": after.power and "running"})


class ServerReinstallInputs(OfServer):
    erase: str = Field(
        min_length=1,
        description="Repeat the id or the name of the server, to confirm that ALL DATA ON "
        "ITS DISK will be erased.",
    )
    os: m.OsSlug | None = optional(
        "Image slug, from the catalog. Default: the image that the API shows for the server."
    )
    password: m.RootPassword | None = optional(
        "Root password: 8 to 64 characters of A-Z a-z 0-9 ! @ # $ % ^ & * - with a letter "
        "and a digit. Generated and shown once if absent."
    )
    ssh_key_ids: Annotated[list[IdText], AfterValidator(sorted_ids)] | None = optional(
        "Ids of SSH keys to install; order does not matter."
    )


class ServerReinstall(Action[ServerReinstallInputs, ServerState]):
    kind: ClassVar[str] = "server_reinstall"
    title: ClassVar[str] = "reinstallation of a server"
    result: ClassVar[str] = "server"
    makes_password: ClassVar[bool] = True
    scopes: ClassVar = ("servers:read", "servers:manage")

    def plan(self, request: Request, inputs: ServerReinstallInputs) -> ActionPlan:
        state = resolve(request, SERVER, id=inputs.id, name=inputs.name)
        if inputs.erase not in (state.id, state.name):
            reason = (
                f"must be {state.id} or {state.name!r}, to say that this server's disk is to be "
                "erased; nothing was sent"
            )
            raise InvalidInput({"erase": reason}, self.title)
        _refuse_suspended(state, "reinstalled")
        os = inputs.os or state.os
        if os is None:
            raise InvalidInput(
                {"os": "is required, since the API does not show which image the server has"}, self.title
            )
        if no_image := catalog_reads.refused_image(request, os, lambda: _tariff(request, state)):
            raise InvalidInput({"os": no_image}, self.title)
        after = state.model_copy(update={"os": os, "ssh_key_ids": inputs.ssh_key_ids})
        note = f"all data on the disk of server {state.name} (id {state.id}) is erased"
        return ActionPlan(
            True, state.shown(), after.shown(), note=note, target=(SERVER, state), data=(state, os)
        )

    def perform(self, request: Request, inputs: ServerReinstallInputs, plan: ActionPlan) -> ServerState:
        state, os = plan.data
        # The resource's own reinstallation, as if a declaration had asked for it.
        inputs_of_server = declared(SERVER, {"os": os, **inputs.given({"password", "ssh_key_ids"})}).inputs
        try:
            after = SERVER.reinstall(request, state, inputs_of_server)
        except InvalidResponse as error:
            raise Failed(
                f"{error.summary} — server {state.id} is being reinstalled, and its new root password could "
                "not be read. Next: reset the password",
                error,
            ) from None
        except ApiError:
            request.reads.forget("servers")
            raise
        return after.model_copy(update={"mode": state.mode})


def _tariff(request: Request, state: ServerState) -> list[m.Tariff]:
    found = None if state.tariff_id is None else catalog_reads.tariffs(request).get(state.tariff_id)
    return [] if found is None else [found]


def _refuse_suspended(state: ServerState, what: str) -> None:
    if state.status == "suspended":
        raise ResourceError(
            f"server {state.name} (id {state.id}) is suspended and cannot be {what}; nothing was sent. "
            "Next: see why in the control panel (an unpaid renewal, perhaps)"
        )
