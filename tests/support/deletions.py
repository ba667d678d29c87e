"""What a run says of deletions, compared with the account."""

import re
from collections.abc import Iterator
from decimal import Decimal

from pulumi_hosting.rehearsal.engines import Run
from tests.support.programs import Program, messages

_STEP = re.compile(
    r"^ --? +\S+:(\w+) (\S+) (deleted|retained)\b(?: original)?(?: \([\d.]+s\))?(\[retain\])?",
    re.MULTILINE,
)
"""The line of a resource, of both engines."""
_SERVER = re.compile(r"server (\d+) deleted(.*?)(?:[,;] ([\d.]+) EUR credited)?$", re.MULTILINE)
_ADDRESS = re.compile(r"\(id (\d+)\)")
_RELEASED = re.compile(r"\(id (\d+)\) of server \d+ released")
_CLEARED = re.compile(r"PTR record (\S+) of (\S+) cleared")

_TABLES = {"SshKey": "ssh_keys", "WebhookSubscription": "subscriptions", "Domain": "domains"}


def present(program: Program) -> set[tuple[str, str]]:
    """Class and id of everything that is on the account, as stacks name it."""
    servers = program.living_ids
    found = {("Server", id) for id in servers}
    for row in program.objects("addresses"):
        id = f"{row['server_id']}/{row['id']}"
        if str(row["server_id"]) in servers and row.get("bought"):
            found.add(("ServerIp", id))
        if str(row["server_id"]) in servers and row["ptr"]:
            found.add(("Ptr", id))
    for kind, table in _TABLES.items():
        found |= {(kind, str(row["id"])) for row in program.objects(table)}
    return found


def recorded(program: Program) -> dict[str, tuple[str, str]]:
    """Class and id of what the stack's state holds, by name."""
    return {
        name: (item["type"].rpartition(":")[2], item["id"])
        for name, item in program.resources().items()
        if not item.get("external")
    }


class Before:
    """The account and the state before a run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.present = present(program)
        self.recorded = recorded(program)

    def false_claims(self, run: Run) -> list[str]:
        """What the run says and is not so, and what it does and does not say. ``run`` replaces or deletes
        what was recorded; the name of a replaced resource stands for the old object.
        """
        return [*self._steps(run), *self._lines(run), *self._silent(run)]

    def _claimed(self, run: Run) -> dict[str, bool]:
        """Names that are said to be deleted → whether the object is said to stay."""
        return {
            name: word == "retained" or bool(retain)
            for kind, name, word, retain in _STEP.findall(run.output)
            if self.recorded.get(name, ("",))[0] == kind
        }

    def _steps(self, run: Run) -> Iterator[str]:
        after, still = present(self.program), {*recorded(self.program).values()}
        for name, stays in self._claimed(run).items():
            kind, id = self.recorded[name]
            if not stays and (kind, id) in still:
                continue  # the entry of a replacement that took the object over
            if stays is not ((kind, id) in after):
                yield f"{kind} {name} ({id}) is said to {'stay' if stays else 'be deleted'}, and is not so"

    def _lines(self, run: Run) -> Iterator[str]:
        after, text = present(self.program), messages(run)
        ids = {id for _, id in after}
        for id, along, credit in _SERVER.findall(text):
            refunds = self._refunded(id)
            if id in ids or refunds != Decimal(credit or 0):
                yield f"server {id} is said to be deleted and {credit or 0} credited: {refunds} were"
            gone = {f"{id}/{address}" for address in _ADDRESS.findall(along)}
            if left := gone & ids or gone - {known for _, known in self.present}:
                yield f"addresses {left} are said to be deleted with server {id}, and were not"
        for address in _RELEASED.findall(text):
            if any(id.endswith(f"/{address}") for _, id in after):
                yield f"address {address} is said to be released, and is there"
        rows = {(row["ptr"], row["address"]) for row in self.program.objects("addresses")}
        for record in _CLEARED.findall(text):
            if record in rows:
                yield f"PTR record {record} is said to be cleared, and is there"

    def _refunded(self, server: str) -> Decimal:
        rows = [row for row in self.program.ledger() if row["operation"] == "delete_server"]
        return sum((Decimal(row["amount"]) for row in rows if str(row["object_id"]) == server), Decimal(0))

    def _silent(self, run: Run) -> Iterator[str]:
        after, claimed = present(self.program), self._claimed(run)
        still = {*recorded(self.program).values()}
        for name, one in self.recorded.items():
            if one in still:
                continue
            if name not in claimed:
                what = "stays" if one in after else "is gone"
                yield f"{one[0]} {name} ({one[1]}) {what}, left the state, and no line says so"
