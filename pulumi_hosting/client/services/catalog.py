"""What can be bought, and for how much. Any valid key (API document, "Catalog")."""

from pulumi_hosting.api import models as m
from pulumi_hosting.client.results import UNSET, Given, Items, given
from pulumi_hosting.client.services.base import Service


class CatalogService(Service):
    """``client.catalog``"""

    def tariffs(self, *, location_id: Given[int] = UNSET) -> Items[m.Tariff]:
        """Server tariffs with the caller's prices, of one location or of all."""
        return self._caller.items("list_tariffs", query=given(location_id=location_id))

    def tariff(self, tariff_id: int) -> m.Tariff:
        """One tariff. Raises ``NotFound``."""
        found: m.Tariff = self._caller.call("get_tariff", tariff_id)
        return found

    def os_images(self, *, tariff_id: Given[int] = UNSET) -> Items[m.OsImage]:
        """OS images; with a tariff, those that can be installed on it. ``slug`` is what orders and reinstalls take."""
        return self._caller.items("list_os_images", query=given(tariff_id=tariff_id))

    def locations(self) -> Items[m.Location]:
        """Where servers can stand."""
        return self._caller.items("list_locations")

    def zones(self) -> Items[m.Zone]:
        """Domain endings with their prices per year."""
        return self._caller.items("list_zones")

    def quote(
        self,
        *,
        tariff_id: int,
        months: Given[m.Months] = UNSET,
        hours: Given[int] = UNSET,
        billing_cycle: Given[m.BillingCycle] = UNSET,
        promo_code: Given[str] = UNSET,
    ) -> m.Quote:
        """What an order would cost now, discounts included; nothing is bought and no promo code used up. Expensive.

        ``months`` 1, 3, 6 or 12, or ``hours`` 1..2160, not both; ``promo_code`` at most 64 characters.
        Raises ``NotFound``, ``InvalidPeriod``.
        """
        query = given(tariff_id=tariff_id, months=months, hours=hours, billing_cycle=billing_cycle, promo_code=promo_code)
        found: m.Quote = self._caller.call("get_quote", query=query)
        return found
