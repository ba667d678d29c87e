"""Revoking the key that makes the call (API document, "API keys": ``DELETE /keys/{key_id}``).

A key can revoke itself and no other, for good, and a test key as really as a live one. The id has to be said,
so that a key is never revoked because another one was in the environment. Nothing can be read with the key
afterwards.
"""

from typing import ClassVar

from pydantic import Field

from pulumi_hosting.actions.action import UNSURE, Action, ActionPlan, Result
from pulumi_hosting.api import models as m
from pulumi_hosting.api.models.field_types import optional
from pulumi_hosting.client.exceptions import Unauthorized
from pulumi_hosting.resources.base import IdText, Inputs
from pulumi_hosting.session.errors import Failed, ResourceError
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text


class ApiKeyRevokeInputs(Inputs):
    key_id: IdText = Field(description="Id of the API key to revoke: the key that makes the call.")


class ApiKeyGone(Result):
    id: str = Field(description="Number of the key in the list of the account's keys; it is not the secret.")
    name: str | None = optional("What the owner called the key.")
    mode: str | None = optional("live or test: the kind of the key. Test keys are really revoked too.")
    status: str = Field(description="active, or revoked.")
    scopes: list[str] = Field(default=[], description="What it was allowed to do.")
    revoked_at: str | None = optional("When it was revoked (RFC 3339, UTC), if the answer says so.")


class ApiKeyRevoke(Action[ApiKeyRevokeInputs, ApiKeyGone]):
    kind: ClassVar[str] = "api_key_revoke"
    title: ClassVar[str] = "revocation of an API key"
    result: ClassVar[str] = "api_key"
    scopes: ClassVar = ()

    def plan(self, request: Request, inputs: ApiKeyRevokeInputs) -> ActionPlan:
        own = request.client.me().key  # asked now: a key that is refused by now has nothing to revoke
        if inputs.key_id != str(own.id):
            raise ResourceError(
                f"key_id is {inputs.key_id}, and the key that makes the call is {own.id}: a key can revoke "
                "itself only; nothing was sent. Next: make the call with the key that is to be "
                "revoked, or correct key_id"
            )
        return ActionPlan(True, _shown(own, "active").shown(), _shown(own, "revoked").shown(), data=own)

    def perform(self, request: Request, inputs: ApiKeyRevokeInputs, plan: ActionPlan) -> ApiKeyGone:
        own: m.ApiKey = plan.data
        try:
            answer = request.client.keys.revoke(own.id)
        except Unauthorized:
            return _shown(own, "revoked")  # it worked a moment ago, when its id was asked for
        except UNSURE as error:
            if not _is_dead(request):
                raise Failed(
                    f"{error.summary} — whether key {own.id} was revoked is not known. Next: run again", error
                ) from None
            return _shown(own, "revoked")
        revoked_at = answer.key.revoked_at if answer.key is not None else None
        return _shown(own, "revoked").model_copy(update={"revoked_at": as_text(revoked_at)})


def _is_dead(request: Request) -> bool:
    """Whether the service refuses the key by now: the one question that a revoked key still answers."""
    try:
        request.client.me()
    except (Unauthorized, *UNSURE) as error:
        return isinstance(error, Unauthorized)
    return False


def _shown(key: m.ApiKey, status: str) -> ApiKeyGone:
    return ApiKeyGone(id=str(key.id), name=key.name, mode=key.mode, status=status, scopes=list(key.scopes))
