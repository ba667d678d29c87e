"""The outcome of a rehearsal as Markdown and as JUnit's XML."""

from pulumi_hosting.cli.junit import Case, junit
from pulumi_hosting.cli.output import as_markdown_text
from pulumi_hosting.rehearsal.outcome import RehearsalOutcome
from pulumi_hosting.reports.report import Points, Report, Section, Summary, Table


def markdown(outcome: RehearsalOutcome) -> str:
    """For a comment on a pull request: the summary and the cost first, what failed next, all steps folded."""
    conclusion = f"{outcome.conclusion} ({len(outcome.steps)} steps, engine {outcome.engine})"
    sections: list[Section] = [Summary("rehearsal", conclusion)]
    if outcome.cost is not None:
        sections.append(Summary("cost", str(outcome.cost)))
    if outcome.losses:
        sections.append(Points("lost", "Would be lost", [str(loss) for loss in outcome.losses]))
    for step in outcome.steps:
        if not step.passed:
            shown = "\n".join(f"    {line}" for line in step.problems)
            sections.append(f"**{step.title}**: {step.expected}: {step.what}\n\n{shown}".rstrip())
    rows = [
        ("ok" if step.passed else "FAILED", step.title, f"{step.expected}: {step.what}", step.requests)
        for step in outcome.steps
    ]
    sections.append(Table(("", "Step", "Result", "Requests"), rows, title="All steps"))
    return as_markdown_text(Report(outcome.facts(), sections))


def as_junit(outcome: RehearsalOutcome) -> str:
    """A test suite with one test case for each step; the cost is in its properties."""
    facts = {name: getattr(outcome, name) for name in ("program", "engine", "dialect")}
    facts |= {} if outcome.cost is None else outcome.cost.facts()
    cases = [
        Case(
            "rehearsal",
            step.title,
            "" if step.passed else "failure",
            f"{step.expected}: {step.what}",
            "\n".join(step.problems),
            step.seconds,
        )
        for step in outcome.steps
    ]
    return junit("rehearsal", cases, facts)
