"""The run: one part after the other, and what follows whatever happens: cleaning up."""

from pulumi_hosting.certify import live, pages, reads, sandbox
from pulumi_hosting.certify.report import Report
from pulumi_hosting.certify.session import Session, Skip, Stopped
from pulumi_hosting.certify.settings import Settings

PARTS = (
    reads.meta,
    reads.account,
    reads.catalog,
    reads.objects,
    reads.scopes,
    sandbox.simulated_order,
    sandbox.simulated_writes,
    sandbox.refusals,
    pages.paging,
    live.orders_and_money,
    live.domain,
    pages.limits,
)


def run(settings: Settings) -> Report:
    """Check the deployment. Never raises for what it answers: see :class:`Report`."""
    try:
        session = Session(settings)
    except Stopped as error:
        return Report(unfinished=str(error))
    with session:
        if not session.keys:
            session.report.unfinished = "there is no key. Next: set HOSTING_API_KEY to a test key"
            return session.report
        try:
            for part in PARTS:
                try:
                    part(session)
                except Skip as why:
                    session.skip_part(part.__name__, str(why))
        except Stopped as error:
            session.report.unfinished = str(error)
        session.report.charged = str(session.charged)
    return session.report
