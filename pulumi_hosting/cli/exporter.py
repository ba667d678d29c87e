"""The work of `pulumi-hosting exporter`."""

import signal

import click
from prometheus_client import CollectorRegistry, start_http_server

from pulumi_hosting.cli.connection import asking
from pulumi_hosting.cli.output import cannot_listen, print_warning
from pulumi_hosting.planning.paid_reads import paid_time_of
from pulumi_hosting.reports.account_objects import reading
from pulumi_hosting.reports.metrics import PaidTimeCollector
from pulumi_hosting.reports.report import CannotAnswer


def run(port: int, host: str, interval: int) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with asking() as (request, _):
        client = request.client
        registry = CollectorRegistry()
        registry.register(
            PaidTimeCollector(
                lambda: paid_time_of(reading(client, print_warning)), print_warning, interval=interval
            )
        )
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as error:
            raise CannotAnswer(cannot_listen(host, port, error)) from None
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"listening on http://{shown}:{server.server_port}/metrics", err=True)
        try:
            thread.join()
        except KeyboardInterrupt:
            server.shutdown()
            server.server_close()
            click.echo("stopped", err=True)
