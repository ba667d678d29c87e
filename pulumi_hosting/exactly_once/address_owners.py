"""Whose a bought address is. The service keeps no text with it, so two kinds of evidence stand beside the
states of the stacks:

- *Notes* in a private file per server, shared by the runs of one user on this machine: which resource has
  which address, and which purchase is under way. Without them a run knows less and stops earlier.
- *Claims* on the account, for runs on other machines: an idempotency key made of the address alone is sent
  with an order that cannot be carried out, for an object that cannot exist and whose number stands for the
  resource. The first to send it binds the key; every other resource is answered ``idempotency_conflict``. So
  two purchases that were made at the same moment end with one address each. Where the service does not
  remember refused requests a claim proves nothing, and this is noticed.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.exceptions import (
    ApiError,
    IdempotencyConflict,
    IdempotencyInProgress,
    NotFound,
    WriteRefused,
)
from pulumi_hosting.client.private_directory import process_runs
from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.idempotency_keys import KeyRing, digest
from pulumi_hosting.exactly_once.key_probe import NONEXISTENT_ID, key_is_used
from pulumi_hosting.session.key_owner import account
from pulumi_hosting.session.request import Request
from pulumi_hosting.session.text import as_text

Claim = Literal["ours", "another's", "unproven"]
# seconds to wait for a lock that is held for a few file operations, or by a run that does not wait
_SHORT = 30.0
_OWNERS = 2**48  # claims use the numbers NONEXISTENT_ID - _OWNERS to NONEXISTENT_ID - 1


@dataclass
class Owners:
    """The evidence about the addresses of one server, as the resource of ``request`` sees it."""

    request: Request
    server_id: str
    _known: dict[str, Any] | None = field(default=None, init=False)

    @property
    def me(self) -> str:
        """A hash of the resource's identity."""
        return digest(self.request.identity.encode())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One purchase after the other: between the runs and threads of this machine. Raises
        ``LockTimeout``, ``LocalFilesError``.
        """
        request = self.request

        def waiting() -> None:
            request.info(f"server {self.server_id}: waiting for another run that buys an address for it")

        wait = max(request.wait_timeout, _SHORT)
        with local_files.lock(
            self._scope, self._purpose, wait, on_wait=waiting, check=lambda: request.clock.sleep(0)
        ):
            self._known = None
            yield

    # --- notes

    def noted(self, ip: m.Ip) -> str | None:
        """Who has the address, as it was noted last; None where nothing was."""
        note = self._notes().get("addresses", {}).get(str(ip.id))
        # Ids begin at the same number again when an emulator is reset.
        return note["owner"] if note is not None and note["added_at"] == as_text(ip.added_at) else None

    def is_noted_as_mine(self, ip: m.Ip) -> bool:
        return self.noted(ip) == self.me

    def is_noted_as_anothers(self, ip: m.Ip) -> bool:
        return self.noted(ip) not in (None, self.me)

    def is_held_by_a_running_process(self, ip: m.Ip) -> bool:
        """Whether another process that still runs noted the address for another resource."""
        if not self.is_noted_as_anothers(ip):
            return False
        return process_runs(self._notes()["addresses"][str(ip.id)]["process"])

    def record(self, ip: m.Ip, purchase_key: str | None, invoice_id: str | None) -> None:
        """Note that this resource has the address. A run that cannot write it goes on: what is not noted
        only makes others stop.
        """
        note = {
            "owner": self.me,
            "address": ip.address,
            "added_at": as_text(ip.added_at),
            "purchase_key": purchase_key,
            "invoice_id": invoice_id,
            "process": os.getpid(),
        }

        def change(notes: dict[str, Any]) -> None:
            notes.setdefault("addresses", {})[str(ip.id)] = note
            notes.get("intents", {}).pop(self.me, None)

        with suppress(local_files.LocalFilesError):
            self._change(change)

    def forget(self, ip_id: str) -> None:
        """The address was released."""
        with suppress(local_files.LocalFilesError):
            self._change(lambda notes: notes.get("addresses", {}).pop(ip_id, None))

    def intend(self, purchase_key: str, before: Sequence[str], paid: int) -> None:
        """Note, before it is sent, what the account showed before this resource's purchase. Raises
        ``LocalFilesError``.
        """
        intent = {"purchase_key": purchase_key, "before": list(before), "paid": paid}
        self._change(lambda notes: notes.setdefault("intents", {}).update({self.me: intent}))

    def drop_intent(self) -> None:
        """The purchase of :meth:`intend` was refused."""
        with suppress(local_files.LocalFilesError):
            self._change(lambda notes: notes.get("intents", {}).pop(self.me, None))

    def intent(self) -> Mapping[str, Any] | None:
        """What :meth:`intend` noted, if neither an address was recorded nor a refusal came since."""
        found: Mapping[str, Any] | None = self._notes().get("intents", {}).get(self.me)
        return found

    # --- claims

    def claim(self, ip: m.Ip) -> Claim:
        """Claim the address for this resource, for the seven days that keys are remembered. Changes
        nothing on the account.
        """
        if self.is_noted_as_mine(ip):
            return "ours"
        if self.request.client.is_test_key:
            return "unproven"  # its keys are not those of the runs that buy
        me = account(self.request.client)
        key = KeyRing(
            me.account_id, me.livemode, "", "claim_server_ip", {"server_id": self.server_id, "address": ip.id}
        ).key(0)

        def renew(id: int, key: str) -> object:
            return self.request.client.servers.renew(id, months=1, idempotency_key=key)

        mine = NONEXISTENT_ID - 1 - int.from_bytes(self.me.encode(), "big") % (_OWNERS - 1)
        try:
            renew(mine, key)
        except NotFound:
            return "ours" if key_is_used(renew, key, NONEXISTENT_ID) else "unproven"
        except (IdempotencyConflict, IdempotencyInProgress):
            return "another's"
        except (ApiError, WriteRefused):
            return "unproven"
        return "unproven"

    # --- parts

    @property
    def _scope(self) -> str:
        return local_files.account_scope(self.request.client)

    @property
    def _purpose(self) -> str:
        return f"addresses of server {self.server_id}"

    def _notes(self) -> dict[str, Any]:
        if self._known is None:
            try:
                self._known = local_files.read(self._scope, self._purpose)
            except local_files.LocalFilesError:
                self._known = {}
        return self._known

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        with local_files.lock(self._scope, f"notes on {self._purpose}", _SHORT):
            notes = local_files.read(self._scope, self._purpose)
            change(notes)
            local_files.write(self._scope, self._purpose, {**notes, "version": 1})
            self._known = notes
