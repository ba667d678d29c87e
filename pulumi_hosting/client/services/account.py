"""The account, its balance and its movements (API document, "Account and balance")."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import UNSET, Given, Pages, given
from pulumi_hosting.client.services.base import Service


class AccountService(Service):
    """``client.account``"""

    def get(self) -> m.Account:
        """Login, e-mail, currency and discounts of the account. Scope ``account:read``."""
        found: m.Account = self._caller.call("get_account")
        return found


class BalanceService(Service):
    """``client.balance``"""

    def get(self) -> m.Balance:
        """The balance and the renewals due within 7 and 30 days, in the account's currency. Scope ``balance:read``."""
        found: m.Balance = self._caller.call("get_balance")
        return found

    def transactions(
        self,
        *,
        cursor: Given[str] = UNSET,
        limit: Given[int] = UNSET,
        direction: Given[Literal["credit", "debit"]] = UNSET,
        since: Given[datetime] = UNSET,
        until: Given[datetime] = UNSET,
    ) -> Pages[m.Transaction]:
        """Movements of the balance, newest first. Scope ``balance:read``.

        ``since`` is inclusive; both times must be aware. ``limit``: items per page, 1..100 (default 100). ``cursor``: start at that page.
        """
        query = given(cursor=cursor, limit=limit, direction=direction, since=since, until=until)
        return self._caller.pages("list_transactions", query=query)

    def topup_info(self) -> m.TopupInfo:
        """Least and greatest amount of a top-up, and the payment gateways. Scope ``balance:read``."""
        found: m.TopupInfo = self._caller.call("get_topup_info")
        return found

    def topup(self, *, amount: Decimal | str, gateway: str, idempotency_key: str | None = None) -> m.TopupResult:
        """Creates a top-up invoice and a link to pay it; the balance moves when the gateway confirms. Scope ``balance:topup``.

        ``amount``: two fraction digits at most, within ``min``..``max`` of :meth:`topup_info`; ``gateway``: one of its gateways.
        ``idempotency_key``: 16..128 characters, made when absent. Expensive. Raises ``ValidationFailed``.
        """
        found: m.TopupResult = self._caller.call(
            "create_topup", body={"amount": amount, "gateway": gateway}, idempotency_key=idempotency_key
        )
        return found
