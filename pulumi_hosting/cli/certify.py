"""The work of `pulumi-hosting certify`."""

import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import click

from pulumi_hosting.certify import Conformance, RunSettings, run
from pulumi_hosting.certify.receiver import HttpReceiver
from pulumi_hosting.certify.report import DEPARTURE, NOT_CHECKED
from pulumi_hosting.cli.connection import line_of
from pulumi_hosting.cli.junit import Case, junit
from pulumi_hosting.cli.output import cannot_listen, json_text, print_json, printable, write_file
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.settings import API_KEY_FILE_VARIABLE, key_of_environment, settings
from pulumi_hosting.reports.report import Unusable


def certify(
    base_url: str | None,
    live_key_file: Path | None,
    narrow_key_file: Path | None,
    webhook_url: str | None,
    webhook_host: str,
    webhook_port: int,
    state: Path | None,
    save: Path | None,
    junit_file: Path | None,
    spend: Decimal,
    domain: str | None,
    max_requests: int,
    as_json: bool,
) -> None:
    try:
        account = settings(None, base_url, timeout=60, deadline=60, ca_file=None, user_agent=None)
        live, narrow = _key(live_key_file, "--live-key-file"), _key(narrow_key_file, "--narrow-key-file")
    except ConfigurationError as error:
        raise Unusable(line_of(error)) from None
    test = account.api_key.reveal()
    if not test.startswith("vk_test_"):
        raise Unusable(
            "the key of the environment is not a test key (vk_test_…). "
            "Next: set HOSTING_API_KEY to one, and give a live key with --live-key-file"
        )
    needs_live = {"--spend": spend, "--domain": domain, "--webhook-url": webhook_url}
    if live is None and (alone := [option for option, value in needs_live.items() if value]):
        raise Unusable(f"{', '.join(alone)} without a live key has no effect. Next: add --live-key-file FILE")
    try:
        listening = HttpReceiver(webhook_url, webhook_host, webhook_port) if webhook_url else nullcontext()
    except OSError as error:
        raise Unusable(cannot_listen(webhook_host, webhook_port, error)) from None
    try:
        with listening as receiver:
            keys = account.base_url, test, live, narrow
            report = run(RunSettings(*keys, spend, domain, receiver, max_requests, state, progress=_progress))
    except OSError as error:
        raise Unusable(f"{error.filename}: {error.strerror}. Next: name another file") from None
    # What the run found comes first: it may have cost money.
    if as_json:
        print_json(report.facts)
    else:
        click.echo(printable(report.text()))
    write_file(save, json_text(report.profile) + "\n")
    write_file(junit_file, as_junit(report))
    sys.exit(report.exit_code)


def _progress(number: int, total: int, title: str) -> None:
    """A run takes minutes, most of them waits for the rate limit: a line for each part, in logs too."""
    click.echo(f"part {number} of {total}: {title}", err=True)


def _key(path: Path | None, option: str) -> str | None:
    """A live key or a narrow key, from a file that only its owner can read."""
    if path is None:
        return None
    try:
        key = key_of_environment({API_KEY_FILE_VARIABLE: str(path.absolute())})
    except ConfigurationError as error:
        raise ConfigurationError(str(error).replace(API_KEY_FILE_VARIABLE, option)) from None
    return key.reveal() if key else None


def as_junit(report: Conformance) -> str:
    """One test case for each check; a departure is a failure."""
    kinds = {DEPARTURE: "failure", NOT_CHECKED: "skipped"}
    cases = []
    for result in report.results:
        area, _, name = result.check.partition(".")
        seen = (result.cost, *result.sentences, result.request, result.answer)
        text = "\n".join(seen) if result.verdict == DEPARTURE else ""
        cases.append(Case(f"certify.{area}", name, kinds.get(result.verdict, ""), result.detail, text))
    if report.unfinished:
        cases.append(Case("certify", "the run", "error", report.unfinished))
    return junit("pulumi-hosting certify", cases)
