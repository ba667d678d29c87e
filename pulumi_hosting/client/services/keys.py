"""Keys of both kinds: public SSH keys for servers, and the API keys of the account (API document, "SSH keys", "API keys")."""

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import Done, Items
from pulumi_hosting.client.services.base import Service


class SshKeysService(Service):
    """``client.ssh_keys``. There is no operation that reads or changes one key."""

    def list(self) -> Items[m.SshKey]:
        """The public keys of the account. Scope ``servers:read``."""
        return self._caller.items("list_ssh_keys")

    def create(self, *, name: str, public_key: str) -> m.SshKey:
        """Adds a public key: one OpenSSH line. Scope ``servers:manage``. Never repeated by itself.

        Raises ``Conflict`` when the key is there already (on deployments that refuse it), ``ValidationFailed``.
        """
        found: m.SshKey = self._caller.call("create_ssh_key", body={"name": name, "public_key": public_key})
        return found

    def delete(self, key_id: int) -> Done:
        """Removes a public key; servers that carry it keep it. Scope ``servers:manage``. Raises ``NotFound``."""
        found: Done = self._caller.call("delete_ssh_key", key_id)
        return found


class KeysService(Service):
    """``client.keys``. API keys are made in the web cabinet only."""

    def list(self) -> Items[m.ApiKey]:
        """The API keys of the account, never their text. Scope ``keys:read``."""
        return self._caller.items("list_api_keys")

    def get(self, key_id: int) -> m.ApiKey:
        """One API key. Scope ``keys:read``. Raises ``NotFound``."""
        found: m.ApiKey = self._caller.call("get_api_key", key_id)
        return found

    def revoke(self, key_id: int) -> m.ApiKeyRevoked:
        """Revokes the key this client uses (its id: ``client.me().key.id``), for test keys too. No other key can be revoked.

        Raises ``InsufficientScope`` for another key, ``Conflict`` when it is revoked already.
        """
        found: m.ApiKeyRevoked = self._caller.call("revoke_api_key", key_id)
        return found
