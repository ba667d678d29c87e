"""The staging account: what a live key does there, and its money."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import accumulate

from pulumi_hosting.certify import shapes as s
from pulumi_hosting.certify.answers import HttpAnswer
from pulumi_hosting.certify.reads import invoice
from pulumi_hosting.certify.session import LIVE, TEST, Exchanges, Skip

POLL_SECONDS = 5


class StagingAccount:
    """The live account: calls whose answers a resumed run keeps, and its money."""

    def __init__(self, run: Exchanges) -> None:
        self.run = run
        self.call: Callable[..., HttpAnswer] = partial(run.call, who=LIVE, kept=True)

    def get(self, path: str) -> HttpAnswer:
        return self.call("GET", path)

    def read(self, check: str, path: str, shape: s.Shape | None = None) -> HttpAnswer:
        return self.run.read(check, path, LIVE, shape, kept=True)

    def until(
        self, path: str, is_it: Callable[[HttpAnswer], object], pause: int = POLL_SECONDS
    ) -> HttpAnswer:
        """What a read shows when that is waited for; after ten minutes, what it shows then."""
        return self.run.until(partial(self.get, path), 600, pause, is_it)

    @property
    def balance(self) -> Decimal:
        return Decimal(self.get("/balance").body["balance"])

    def charged(self, what: str, before: Decimal, answer: HttpAnswer, after: Decimal) -> Decimal:
        """Compare what the answer says with what the balance lost."""
        run, amount = self.run, Decimal(answer.body.get("charged") or "0")
        run.charged += max(amount, before - after)
        words = f"{what}: charged is {amount}, and the balance fell by {before - after}"
        run.expect("money.balance-falls", before - after == amount, words, answer)
        if (said := answer.body.get("balance_after")) is not None:
            run.same("money.balance-after", f"balance_after of {what}", Decimal(said), after, answer)
        return amount

    def repeated(self, what: str, first: HttpAnswer, after: Decimal, *call: str, **options: object) -> None:
        """The same Idempotency-Key again: the same answer, and no second charge."""
        again, words = self.call(*call, stored=True, **options), "the balance after a repetition"
        self.run.same("idempotency.replay", f"a repeated {what}", again.data, first.data, again)
        self.run.same("idempotency.no-second-charge", words, self.balance, after, again)

    def compare_reads(self) -> None:
        """A test key reads what the live key reads: sandbox servers come on top."""
        run = self.run
        for path in ("/account", "/balance", "/invoices", "/transactions", "/servers"):
            if TEST in run.keys:
                mine, other = (_seen(run.get(path, who)) for who in (LIVE, TEST))
                same = mine == [one for one in other if not run.is_fake(one)]
                words = f"{path} has {other} for a test key, and {mine} for a live key"
                run.expect("sandbox.real-reads", same, words)

    def try_with_test_key(self, id: int) -> None:
        """What a test key does to a real server is simulated."""
        run, path = self.run, f"/servers/{id}"
        if TEST not in run.keys or run.resumed:
            return
        before = run.get(path, LIVE).body
        run.call("PATCH", path, TEST, json_body={"notes": f"certify {run.id} simulated"})
        run.call("POST", f"{path}/actions/power", TEST, json_body={"action": "stop"})
        run.call("DELETE", path, TEST, step="simulated deletion")
        run.clock.sleep(POLL_SECONDS)
        after = run.get(path, LIVE)
        for name in ("notes", "status"):
            words = f"{name} of a real server after simulated changes"
            run.same("sandbox.nothing-charged", words, after.body.get(name), before.get(name), after)

    def ledger(self, what: str, direction: str, amount: Decimal, invoice_id: object = None) -> None:
        """A transaction of this amount is among the newest."""
        listed = self.get("/transactions?limit=20")
        found = [
            entry
            for entry in listed.items
            if entry.get("direction") == direction
            and s.fits(entry.get("amount"), "money")
            and Decimal(entry["amount"]) == amount
            and (invoice_id is None or entry.get("invoice_id") == invoice_id)
        ]
        words = f"{what}: no {direction} of {amount} for its invoice"
        self.run.expect("money.ledger", found or not amount, words, listed)
        for entry in found[:1]:
            self.run.shape("account.transactions", entry, s.TRANSACTION, listed)

    def ledger_of_refunds(self, refund: Decimal) -> None:
        """The newest credits add up to a refund: one for each invoice that is refunded."""
        listed = self.get("/transactions?limit=20&direction=credit")
        parts = [*accumulate(Decimal(entry["amount"]) for entry in listed.items)]
        self.run.expect("money.ledger", refund in parts, f"no credit of {refund} after a deletion", listed)

    def paid_invoice(self, what: str, id: object, amount: Decimal, types: tuple[str, ...]) -> None:
        read = self.get(f"/invoices/{id}")
        if not self.run.expect("money.invoice", read.status != 404, f"{what} has no invoice", read):
            return
        self.run.status("invoices.read", read, 200)
        invoice(self.run, read.data, read)
        run, body = self.run, read.body
        run.same("money.invoice", f"status of the invoice of {what}", body.get("status"), "paid", read)
        run.same("money.invoice", f"amount of {what}", Decimal(body.get("amount", "0")), amount, read)
        words = f"type of the invoice of {what} is {body.get('type')}"
        run.expect("invoices.types", body.get("type") in types, words, read)


def _seen(answer: HttpAnswer) -> list[object]:
    """What a read is about: ids of a list, or what names an account and its money."""
    return answer.ids or [answer.body.get(n) for n in ("login", "balance")]


def need_live_key(run: Exchanges) -> StagingAccount:
    if LIVE not in run.keys:
        raise Skip("no live key was given (--live-key-file)")
    if not run.settings.spend:
        raise Skip("nothing may be spent (--spend)")
    return StagingAccount(run)
