"""Bodies of SSH keys (API document, "SSH keys")."""

from typing import Annotated

from pydantic import AfterValidator, Field

from pulumi_hosting.api.models.body import Request, Response
from pulumi_hosting.api.models.field_types import Id, PublicKey, Timestamp
from pulumi_hosting.api.values import check_line


class SshKey(Response):
    """A public key of the account. ``fingerprint`` has the ``SHA256:`` form."""

    id: Id
    name: str
    fingerprint: str | None = None
    type: str | None = None
    public_key: str
    created_at: Timestamp | None = None


class SshKeyCreate(Request):
    name: Annotated[str, Field(min_length=1, max_length=255), AfterValidator(check_line)] = Field(
        description="Name shown in the account, 1 to 255 characters."
    )
    public_key: PublicKey = Field(description="One OpenSSH public key line: type, base64, comment.")
