"""Pull requests, merges and nightly checks of a Pulumi stack, of a playbook, or of both, on any CI service.

    python pipeline.py pull-request     rehearse, preview with a test key, try a stack in the sandbox, comment
    python pipeline.py merge            preview with the live key; apply what was reviewed and nothing else
    python pipeline.py nightly          look for drift and for what nothing manages; open or update an issue
    python pipeline.py closed           remove what a pull request may have left

Settings are environment variables: docs/gitops.md lists them. Keys are never arguments. Exit codes: 0 fine,
1 something failed, 2 a setting is missing, 7 there is drift, something unmanaged, or a change that was not
reviewed.
"""

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

from forge import ForgeError, forge
from plan import (
    FAILED,
    FOUND,
    MAX_CHARGE,
    MISUSED,
    NO_CAUSE,
    OF_THE_STATE,
    REFUSED_TO_TEST_KEYS,
    Managed,
    Plan,
    Run,
    Stop,
    key,
    last_line,
    limit,
    run,
    setting,
)
from playbook import Playbook
from report import changes_table, code, digest_of, publish, redacted, report_text, summary_of, table
from stack import Stack, program_config

Checks = list[tuple[str, bool, str]]
"""Name, whether it passed, result."""
Details = list[tuple[str, str]]
"""Title, text."""
APPROVE = "/approve"
"""What a person with write access writes on the pull request, with the digest that a merge named."""
NOT_CHECKED = "not checked with a test key"
PROBLEM = re.compile(rf" +\| (?!(?:{NO_CAUSE.pattern})$)(.+)")
"""A line of a rehearsal below a step that failed."""


def parts() -> list[Stack | Playbook]:
    """What the pipeline manages."""
    found: list[Stack | Playbook] = []
    if name := os.environ.get("STACK"):
        found.append(Stack(name))
    if name := os.environ.get("PLAYBOOK"):
        found.append(Playbook(name))
    if not found:
        raise Stop("neither STACK nor PLAYBOOK is set. Next: set one in the job's environment", MISUSED)
    return found


def names() -> str:
    return "+".join(part.name for part in parts())


def marker() -> str:
    """What a comment begins with, and an issue. A repository may have several stacks."""
    return f"<!-- hosting-pipeline {names()} "


# --- pull request


def pull_request() -> int:
    number = setting("PULL_REQUEST")
    is_trusted = bool(os.environ.get("HOSTING_TEST_KEY"))  # CI services give forks no secrets
    checks: Checks = []
    details: Details = []
    plans: list[Plan] = []
    for part in parts():
        if isinstance(part, Stack):
            rehearse(part, checks, details)
        if is_trusted:
            plans.append(preview(part, checks, details))
        if is_trusted and isinstance(part, Stack):
            try_out(f"pr-{number}", checks, details)
    is_complete = bool(plans) and not any(plan.error for plan in plans)
    head = [
        f"{marker()}digest={digest_of(plans) if is_complete else 'none'} -->",
        f"## {names()}: {summary_of(plans) if is_complete else 'the changes are not known'}",
        "",
        *(f"**Danger:** the preview failed: {code(plan.error)}\n" for plan in plans if plan.error),
        *(cost_of(plans, key("test")) if is_complete else []),
        *changes_table(plans),
        *(f"- {NOT_CHECKED}: {code(line)}" for plan in plans for line in plan.unchecked),
        "",
        *table(
            ("Check", "Result"),
            [(name, result_of(ok, text)) for name, ok, text in checks],
        ),
    ]
    if not is_trusted:
        head.append("There is no test key here (a fork has none): nothing but a rehearsal was done.")
    text = report_text(head, details)
    publish(text)
    if is_trusted and (service := forge()):
        service.replace_comment(number, marker(), text)
    return 0 if all(ok for _, ok, _ in checks) else FAILED


def cost_of(plans: list[Plan], environ: Mapping[str, str]) -> list[str]:
    """What the changes cost now and per month, as Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(plans))]
        for file, plan in zip(files, plans, strict=True):
            file.write_text(plan.source, encoding="utf-8")
        command = [*shlex.split(setting("PULUMI_HOSTING", "pulumi-hosting")), "cost", "--markdown"]
        done = run([*command, *map(str, files)], Path(), environ)
    if done.code:
        return [f"**Cost:** not known: {code(last_line(done.output))}", ""]
    return [done.stdout.strip(), ""]


def result_of(is_well: bool, text: str) -> str:
    if text == NOT_CHECKED:
        return code(text)
    return f"{'passed' if is_well else '**failed**'}: {code(text)}"


def rehearse(stack: Stack, checks: Checks, details: Details) -> None:
    """The program's whole life on an emulator: no key, no account, no state of ours."""
    command = [*shlex.split(setting("PULUMI_HOSTING", "pulumi-hosting")), "rehearse", "."]
    options = shlex.split(setting("REHEARSE_ARGS", ""))
    config = [option for entry in program_config() for option in ("--config", entry)]
    done = run([*command, *options, *config], stack.directory, {}, OF_THE_STATE)
    lines = (done.output.strip() or "no output").splitlines()
    problems = [found[1] for line in lines if (found := PROBLEM.fullmatch(line))]
    result = "; ".join([lines[-1], *problems[:1]] if problems else lines[-2:])  # cost and conclusion
    checks.append(("rehearsal, without a key", done.code == 0, result))
    details.append(("Rehearsal", done.output))


def preview(part: Stack | Playbook, checks: Checks, details: Details) -> Plan:
    """What a merge would change on the account, seen with the test key."""
    try:
        plan = part.plan({**key("test"), **limit()})
    except Stop as stop:
        plan = Plan(error=str(stop))
    is_refused = bool(REFUSED_TO_TEST_KEYS.search(plan.error))
    result = NOT_CHECKED if is_refused else plan.error or summary_of([plan])
    checks.append((f"preview of {part.name}, with a test key", is_refused or not plan.error, result))
    details.append((f"Preview of {part.name}", plan.details))
    return plan


def try_out(name: str, checks: Checks, details: Details) -> None:
    """A stack of the pull request's own, in the sandbox."""
    try:
        is_well, text = Stack(name).try_out({**sandbox(name), MAX_CHARGE: "1000000.00"})
    except Stop as stop:
        is_well, text = False, str(stop)
    is_refused = not is_well and bool(REFUSED_TO_TEST_KEYS.search(text))
    result = NOT_CHECKED if is_refused else text.splitlines()[-1]
    checks.append((f"stack {name}, in the sandbox", is_well or is_refused, result))
    details.append((f"Stack {name}", text))


def sandbox(name: str) -> dict[str, str]:
    return {**key("test"), "HOSTING_MODE": "test", "HOSTING_SCOPE": name}


def closed() -> int:
    name = f"pr-{setting('PULL_REQUEST')}"
    if not os.environ.get("HOSTING_TEST_KEY"):
        print("there is no test key here (a fork has none), so there is no stack either")
        return 0
    print(redacted(Stack(name).remove(sandbox(name)).output) or f"there is no stack {name}")
    return 0


# --- merge


def merge() -> int:
    live = {**key("live"), "HOSTING_MODE": "live", MAX_CHARGE: setting(MAX_CHARGE)}
    managed = parts()
    plans = [part.plan(live) for part in managed]
    for part, plan in zip(managed, plans, strict=True):
        if plan.error:
            publish(report_text([f"## {part.name}: the preview failed"], [("Preview", plan.details)]))
            raise Stop(f"{part.name}: {plan.error}")
    digest, has_changes = digest_of(plans), any(plan.changes for plan in plans)
    title = f"## {names()}: {summary_of(plans)}"
    renewals = sum((plan.renewals for plan in plans), Decimal(0))
    beside = [f"Beside the review: renewals up to {renewals}, as keep_paid says.", ""] if renewals else []
    publish(report_text([title, "", *beside, *cost_of(plans, live), *changes_table(plans)], []))
    if has_changes:
        must_be_reviewed(digest)
    if not has_changes:
        live[MAX_CHARGE] = str(min(renewals, Decimal(live[MAX_CHARGE])))  # else it may only record outputs
    for part in managed:
        done = part.apply(live)
        word = "failed" if done.code else "applied"
        publish(report_text([f"## {part.name}: {word}"], [("Run", done.output)]))
        if done.code:
            raise Stop(f"{part.name}: {last_line(done.output)}")
    return 0


def must_be_reviewed(digest: str) -> None:
    """Raises ``Stop`` if these changes were not reviewed: neither a comment of ours on a pull request of this
    commit shows them, nor did a person approve them there or by hand.
    """
    given = os.environ.get("REVIEWED_DIGEST")
    seen, approved = {given} if given else set(), set[str]()
    numbers: list[str] = []
    if not given and (service := forge()):
        numbers = service.pull_requests_of(setting("COMMIT"))
        pattern = re.compile(re.escape(marker()) + r"digest=(\w{64}) -->")
        for number in numbers:
            found = [pattern.match(body) for body in service.comment_bodies(number, marker())]
            seen |= {match[1] for match in found if match}
            approved |= service.approvals(number, APPROVE)
    if digest in seen | approved:
        return
    what = "these are not the reviewed changes" if seen else "no review of changes was found for this commit"
    ways = [
        f"comment `{APPROVE} {digest}` on pull request {number} and run this job again"
        for number in numbers[:1]
    ]
    ways.append(f"run this job by hand with REVIEWED_DIGEST={digest}")
    raise Stop(f"{what}; nothing was changed. Next: read the changes above, then {', or '.join(ways)}", FOUND)


# --- nightly


def nightly() -> int:
    """Exit code 7 with drift or with something unmanaged, 1 if that could not be found out."""
    live = {**key("live"), **limit(), "HOSTING_MODE": "live"}
    with tempfile.TemporaryDirectory() as folder:
        found = [(part, part.drift(live, Path(folder))) for part in parts()]
        managed = [drift.managed for _, drift in found]
        others = enumerate(setting("OTHER_STACKS", "").split(), 1)
        managed += [Stack(name).export(Path(folder) / f"{number}.json") for number, name in others]
        runs = [(f"drift of {part.name}", drift.done) for part, drift in found]
        paid = renewals(managed, live)
        runs.append(("audit of the account", audit(managed, live)))
    repairs = [
        f"Repair the drift of {part.name}: {code(part.repair)}, or declare what is on the account."
        for part, drift in found
        if drift.done.code == FOUND
    ]
    head = [
        f"{marker()}nightly -->",
        *table(("Check", "Result"), [(name, result_of_check(done)) for name, done in runs]),
        *repairs,
    ]
    text = report_text(head, [(name.capitalize(), shown(done)) for name, done in runs])
    ends = [f"{marker()}paid-time -->", f"Paid time of the account: {result_of_check(paid)}"]
    ends_text = report_text(ends, [("Paid time", paid.output)])
    publish(text)
    publish(ends_text)
    codes = {done.code for _, done in runs}
    if service := forge():
        title = f"{names()}: the account differs from what is declared"
        service.report_issue(head[0], title, text, is_open=codes != {0})
        title = f"{names()}: something has ended, or ends and is not paid for"
        service.report_issue(ends[0], title, ends_text, is_open=paid.code != 0)
    codes.add(paid.code)
    return FAILED if codes - {0, FOUND} else max(codes)


def shown(done: Run) -> str:
    """The output of a check that found something, failed, or warned."""
    return done.output if done.code or "warning" in done.output.lower() else ""


def renewals(managed: list[Managed], environ: Mapping[str, str]) -> Run:
    """What ends within two weeks and is not paid for, and who knows it."""
    command = shlex.split(setting("PULUMI_HOSTING", "pulumi-hosting"))
    arguments = [argument for known in managed if not known.gaps for argument in known.arguments]
    return run([*command, "renewals", "--days", "14", *arguments], Path(), environ)


def audit(managed: list[Managed], environ: Mapping[str, str]) -> Run:
    """What nothing manages. Not made if it is not known what is managed: that would be listed too."""
    if gaps := [gap for known in managed for gap in known.gaps]:
        return Run(FAILED, f"not made, as it is not known what is managed: {'; '.join(gaps)}\n")
    command = shlex.split(setting("PULUMI_HOSTING", "pulumi-hosting"))
    arguments = [argument for known in managed for argument in known.arguments]
    form = [] if "--stack" in arguments else ["--form", "ansible"]  # a playbook is all there is
    return run([*command, "audit", *arguments, *form], Path(), environ)


def result_of_check(done: Run) -> str:
    """In words; of a check that failed the last line."""
    if done.code in (0, FOUND):
        return "**found**" if done.code else "nothing found"
    return f"**failed**: {code(last_line(done.output))}"


COMMANDS: Mapping[str, Callable[[], int]] = {
    "pull-request": pull_request,
    "merge": merge,
    "nightly": nightly,
    "closed": closed,
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return MISUSED
    try:
        return COMMANDS[arguments[0]]()
    except (Stop, ForgeError) as error:
        print(f"error: {redacted(str(error))}", file=sys.stderr)
        return error.code if isinstance(error, Stop) else FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
