"""The run: one part after the other, and what follows whatever happens: cleaning up."""

from pulumi_hosting.certify import live, pages, reads, refused, sandbox
from pulumi_hosting.certify.report import Conformance
from pulumi_hosting.certify.session import Exchanges, Skip, Stopped
from pulumi_hosting.certify.settings import RunSettings

PARTS = (
    (reads.meta, "meta. http. auth. errors."),
    (reads.account, "account. invoices."),
    (reads.catalog, "catalog."),
    (reads.objects, "servers. domains.availability keys. sandbox.webhooks"),
    (reads.scopes, "scopes."),
    (sandbox.simulated_order, "sandbox. servers. idempotency."),
    (sandbox.simulated_writes, "sandbox."),
    (refused.refusals, "idempotency. http."),
    (pages.paging, "pages."),
    (live.orders_and_money, "money. webhooks. events. orders. addresses."),
    (live.domain, "domains. events.domain"),
    (live.events, "webhooks. events."),
    (pages.limits, "limits."),
)
"""Each part, and the checks that are not made if it is skipped."""


UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def run(settings: RunSettings) -> Conformance:
    """Check the deployment. Never raises for what it answers: see :class:`Report`."""
    try:
        session = Exchanges(settings)
    except Stopped as error:
        return Conformance(unfinished=str(error))
    with session:
        if not session.keys:
            session.report.unfinished = "there is no key. Next: set HOSTING_API_KEY to a test key"
            return session.report
        unread: list[str] = []
        try:
            for part, areas in PARTS:
                try:
                    part(session)
                except Skip as why:
                    session.skip_areas(str(why), areas)
                except UNREADABLE as error:
                    # An answer without a field that the part goes on with: most often a departure already.
                    words = f"an answer lacked what the next step needs ({type(error).__name__}: {error})"
                    session.skip_areas(words, areas)
                    unread.append(f"{part.__name__}: {words}")
            if unread and not session.report.departures:
                session.report.unfinished = unread[0]
        except Stopped as error:
            session.report.unfinished = str(error)
        finally:
            session.clean_up()
        session.report.charged = str(session.charged)
    return session.report
