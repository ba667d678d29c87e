"""A new root password for a server (API document, "Servers": ``actions/reset-password``).

It has no idempotency key: a repetition would make the password void that the first answer showed. So it is
sent once per run, and whether it was done already is for the frontend to know, by where it keeps the
password.
"""

from typing import ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import Action, ActionPlan, OfServer, Result, answer_may_be_lost, resolve
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.exceptions import RateLimited
from pulumi_hosting.resources.server_powers import SERVER
from pulumi_hosting.session.errors import Failed
from pulumi_hosting.session.request import Request


class ServerPasswordReset(Result):
    id: str = Field(description="Id of the server that has the new password.")
    name: str | None = optional("Host name of that server.")
    password: Secret | None = optional("The new root password, shown only once.")


class ServerPassword(Action[OfServer, ServerPasswordReset]):
    kind: ClassVar[str] = "server_password"
    title: ClassVar[str] = "password reset of a server"
    result: ClassVar[str] = "server"
    makes_password: ClassVar[bool] = True
    scopes: ClassVar = ("servers:read", "servers:manage")

    def plan(self, request: Request, inputs: OfServer) -> ActionPlan:
        state = resolve(request, SERVER, id=inputs.id, name=inputs.name)
        reset = ServerPasswordReset(mode=state.mode, id=state.id, name=state.name)
        return ActionPlan(True, reset.shown(), reset.shown(), target=(SERVER, state), data=reset)

    def perform(self, request: Request, inputs: OfServer, plan: ActionPlan) -> ServerPasswordReset:
        reset: ServerPasswordReset = plan.data
        lost = (
            f"whether the root password of server {reset.id} was changed is not known, and a new one was not "
            "seen; nothing was repeated. Next: run again for another one (at most 5 in 5 minutes)"
        )
        try:
            with answer_may_be_lost(lost):
                answer = request.client.servers.reset_password(int(reset.id))
        except RateLimited as error:
            pause = f" {error.retry_after:.0f} s" if error.retry_after else " up to five minutes"
            raise Failed(
                f"{error.summary} — at most 5 password resets in 5 minutes are made for one server; the "
                f"password is unchanged. Next: wait{pause}",
                error,
            ) from None
        return reset.model_copy(update={"password": answer.password})
