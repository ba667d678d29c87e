"""The run: one part after the other, and what follows whatever happens: cleaning up."""

from pulumi_hosting.certify import domains, live, pages, reads, refused, sandbox
from pulumi_hosting.certify.report import Conformance, Stopped
from pulumi_hosting.certify.session import Exchanges
from pulumi_hosting.certify.settings import RunSettings

PARTS = (
    (reads.meta, "meta. http. auth. errors."),
    (reads.api_keys, "keys. limits."),
    (reads.account, "account. invoices."),
    (reads.catalog, "catalog."),
    (reads.objects, "servers. domains.availability sandbox.webhooks"),
    (reads.scopes, "scopes."),
    (sandbox.simulated_order, "sandbox. servers. idempotency."),
    (sandbox.simulated_writes, "sandbox. account.topup ssh-keys. domains. invoices. money."),
    (domains.simulated_domain, "domains.register domains.transfer"),
    (refused.refusals, "idempotency. http."),
    (pages.paging, "pages."),
    (live.orders_and_money, "money. webhooks. events. orders. addresses."),
    (domains.domain, "domains. events.domain"),
    (live.events, "webhooks. events."),
    (reads.transactions, "account.transaction"),
    (pages.limits, "limits."),
)
"""Each part, and the checks that are not made if it is skipped."""


def run(settings: RunSettings) -> Conformance:
    """Check the deployment. Never raises for what it answers: see :class:`Conformance`."""
    try:
        session = Exchanges(settings)
    except Stopped as error:
        return Conformance(unfinished=str(error))
    with session:
        if not session.keys:
            session.report.unfinished = "there is no key. Next: set HOSTING_API_KEY to a test key"
            return session.report
        if why := session.unusable():
            return Conformance(unfinished=why, requests=session.report.requests)
        try:
            for number, (part, areas) in enumerate(PARTS, 1):
                settings.progress(number, len(PARTS), part.__name__.replace("_", " "))
                session.part(areas, part, session)
        except Stopped as error:
            session.report.unfinished = str(error)
        finally:
            session.clean_up()
        session.settle()
        if session.unread and not session.report.departures:
            session.report.unfinished = session.report.unfinished or session.unread[0]
        session.report.charged = str(session.charged)
    return session.report
