"""The commands of `pulumi-hosting action`, made of the inputs that each action declares, and their work."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from pulumi_hosting.actions import ACTIONS, ActionOutcome, act, check
from pulumi_hosting.actions.action import AnyAction, Shown
from pulumi_hosting.cli.connection import asking, line_of
from pulumi_hosting.cli.lazy import works_in
from pulumi_hosting.cli.output import finish
from pulumi_hosting.client.exceptions import InvalidInput
from pulumi_hosting.planning.budget import Budget, Limit
from pulumi_hosting.planning.monthly_budget import MonthlyBudget
from pulumi_hosting.reports.report import CannotAnswer, Report, Section, Table, Unusable, money
from pulumi_hosting.schema.fields import fields
from pulumi_hosting.session.cost import Cost
from pulumi_hosting.session.errors import LimitExceeded, about
from pulumi_hosting.session.request import Request


def command(name: str, line: str, example: str) -> click.Command:
    """The command of an action. ``line``: what it does; ``example``: options that it may be called with."""
    one = ACTIONS[name.replace("-", "_")]
    given = [field for field in fields(one.Inputs) if not field.secret]
    options: list[click.Parameter] = [
        click.Option(
            [f"--{field.name.replace('_', '-')}", field.name],
            required=field.required,
            multiple=field.type.kind == "array",
            metavar="TEXT",
            help=field.description.replace("`", ""),
        )
        for field in given
    ]
    if one.makes_password:
        options.append(
            click.Option(
                ["--password-file", "password_file"],
                required=True,
                type=click.Path(dir_okay=False),
                help="A new file for the new password, which is shown nowhere else.",
            )
        )
    if one.charges:
        help = "Refuse to charge more than this (decimal, in the account's currency)."
        options.append(click.Option(["--max-charge", "max_charge"], metavar="AMOUNT", help=help))
    options += [
        click.Option(["--preview-only"], is_flag=True, help="Say what would happen, then stop."),
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
    ]
    scopes = ", ".join(one.scopes) or "none"
    help = (
        f"{line}\n\nScopes of the key: {scopes}. Exit codes: 0 if it is done or there is nothing "
        "to do, 1 if it failed or was refused, 2 for options that cannot be used."
        f"\n\nExample: pulumi-hosting action {name} {example}"
    )
    work = works_in("pulumi_hosting.cli.run_action:run")(run)
    return click.Command(name, callback=partial(work, kind=one.kind), params=options, help=help)


def run(
    kind: str,
    *,
    preview_only: bool,
    yes: bool,
    as_json: bool,
    max_charge: str | None = None,
    password_file: str | None = None,
    **given: Any,
) -> None:
    action = ACTIONS[kind]
    try:
        named = {name: [*value] if isinstance(value, tuple) else value for name, value in given.items()}
        inputs = check(action, {name: value for name, value in named.items() if value not in (None, [])})
        month = MonthlyBudget(os.environ.get("HOSTING_BUDGET"))
        budget = Budget(Limit("--max-charge", max_charge, "leave it"), month=month).checked()
    except InvalidInput as error:
        about(error, action.called(given))
        raise Unusable(line_of(error)) from None
    file = None if password_file is None or preview_only else _PasswordFile(Path(password_file))
    called = action.called(given)
    with file or nullcontext(), asking(read_only=preview_only, called=called) as (found, progress):
        request = replace(found, identity=f"action:{kind}", info=progress.above(_say))
        outcome = act(request, action, inputs, dry_run=True, approve=partial(_book, budget, request))
        request.session.paying = month.paying
        # a charge of an interrupted run is reported by the second look, which then does nothing
        if not preview_only and (outcome.changed or outcome.fetches or action.charges):
            if outcome.changed and action.charges and outcome.cost is None and yes and not budget.limited:
                raise CannotAnswer("its price is not known. Next: add --max-charge, or leave out --yes")
            if outcome.changed and not yes:
                _ask(action, outcome)
            agreed = _at_most(budget, outcome)
            outcome = act(request, action, inputs, approve=partial(_book, agreed, request))
            if file is not None:
                file.keep(outcome.result.values(), request)
    finish(_report(action, outcome, preview_only=preview_only), as_json=as_json)


class _PasswordFile:
    """A new file of mode 0600, made before the password is: one that cannot be kept is not asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise Unusable(f"{path} already exists. Next: give --password-file a new name") from None
        except OSError as error:
            raise Unusable(f"{path} cannot be written: {error.strerror}. Next: give another one") from None
        self._is_kept = False

    def __enter__(self) -> "_PasswordFile":
        return self

    def keep(self, result: Mapping[str, Any], request: Request) -> None:
        """Write the password. That of a test key belongs to nothing."""
        password = next((result[name] for name in ("password", "root_password") if result.get(name)), None)
        if password is None or request.mode == "test":
            request.warn(f"{self.path} is not written: the service showed no password of a real server")
            return
        try:
            os.write(self._file, f"{password}\n".encode())
            os.fsync(self._file)
        except OSError as error:
            raise CannotAnswer(
                f"the password was changed, but {self.path} cannot be written: {error.strerror}. Next: make "
                "room, and run again for another password"
            ) from None
        self._is_kept = True

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        if not self._is_kept:
            self.path.unlink(missing_ok=True)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _book(budget: Budget, request: Request, cost: Cost | None) -> None:
    budget.must_book(request.identity, cost)
    if cost is not None and (refusal := budget.beyond_month(request.identity, request.client, cost)):
        raise LimitExceeded(refusal)


def _at_most(budget: Budget, shown: ActionOutcome) -> Budget:
    """What may be charged: nothing if nothing was to be done, and no more than was shown if no limit was
    given."""
    if shown.changed and (budget.limited or shown.cost is None):
        return budget
    amount = shown.cost.amount if shown.changed and shown.cost else 0
    return Budget(Limit("--max-charge", str(amount), "run again"), month=budget.month)


def _ask(action: AnyAction, planned: ActionOutcome) -> None:
    for line in _lines(action, planned, is_done=False):
        click.echo(line, err=True)
    if not _is_terminal():
        raise Unusable("nothing was done: it must ask, and standard input is not a terminal. Next: add --yes")
    if not click.confirm("Do it?", err=True):
        raise click.Abort


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _lines(action: AnyAction, planned: ActionOutcome, *, is_done: bool) -> Iterator[str]:
    if not planned.changed and not planned.fetches:
        yield f"{action.title}: nothing to do" + (f", {planned.note}" if planned.note else "")
    elif is_done:
        yield f"{action.title}: " + ("failed. Next: look at the receiver's log" if planned.failed else "done")
    else:
        yield f"{action.title}: would be done" + (f"; {planned.note}" if planned.note else "")
        if action.charges:
            cost = planned.cost
            shown = "a price that is not known" if cost is None else money(cost.amount, cost.currency)
            yield f"It would charge {shown}" + (f" ({cost.what})" if cost else "")


def _report(action: AnyAction, done: ActionOutcome, *, preview_only: bool) -> Report:
    is_done = not preview_only
    facts = {"action": action.kind, "changed": done.changed, "preview": preview_only, "note": done.note}
    if action.charges:
        known = done.after if isinstance(done.after, Mapping) else {}
        amount = known.get("charged") or (str(done.cost.amount) if done.cost else None)
        currency = known.get("currency") or (done.cost.currency if done.cost else None)
        facts["charge"] = {"amount": amount, "currency": currency} if done.changed else None
    sections: list[Section] = [*_lines(action, done, is_done=is_done)]
    change = done.change[1] if done.changed and done.change is not None and preview_only else {}
    sections += [f"{name}: {value}" for name, value in change.items()]
    sections += [line for line in _shown(done.before, done.after) if line not in sections]
    return Report({**facts, action.result: done.after}, sections, exit_code=int(done.failed))


def _shown(before: Shown, after: Shown) -> list[Section]:
    """What the account shows afterwards, as far as it differs; of a list, one row each."""
    if isinstance(after, Mapping):
        old = {**before, "id": None} if isinstance(before, Mapping) else {}
        shown = [name for name, value in after.items() if value not in (None, "", [], old.get(name))]
        return [f"{name}: {after[name]}" for name in sorted(shown, key=lambda name: name != "id")]
    return [Table(("ID", "STATUS"), [(row.get("id"), row.get("status")) for row in after or ()])]
