"""Bodies of SSH keys (API document, "SSH keys")."""

from typing import Annotated

from pydantic import Field

from pulumi_hosting.api.models.body import RequestModel, Response
from pulumi_hosting.api.models.field_types import ONE_LINE, Id, PublicKey, Timestamp, optional


class SshKey(Response):
    """A public key of the account. ``fingerprint`` has the ``SHA256:`` form."""

    id: Id = Field(description="Number that orders and reinstallations take to install the key.")
    name: str = Field(description="Name under which the account shows it.")
    fingerprint: str | None = optional("Fingerprint as `ssh-keygen -l` prints it: `SHA256:…`.")
    type: str | None = optional("Algorithm of the key, such as `ssh-ed25519`.")
    public_key: str = Field(description="The OpenSSH public key line: type, base64, comment.")
    created_at: Timestamp | None = optional("When it was added to the account.")


SshKeyName = Annotated[str, Field(min_length=1, max_length=255), ONE_LINE]


_EXAMPLE_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


class SshKeyCreate(RequestModel, example={"name": "laptop", "public_key": _EXAMPLE_KEY}):
    name: SshKeyName = Field(description="Name shown in the account, 1 to 255 characters.")
    public_key: PublicKey = Field(description="One OpenSSH public key line: type, base64, comment.")
