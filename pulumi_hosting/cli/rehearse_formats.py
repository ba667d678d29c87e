"""The outcome of a rehearsal as Markdown and as JUnit's XML."""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pulumi_hosting.cli.output import as_markdown_text
from pulumi_hosting.rehearsal.outcome import RehearsalOutcome
from pulumi_hosting.reports.report import Points, Report, Section, Summary, Table

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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


def junit(outcome: RehearsalOutcome) -> str:
    """A test suite with one test case for each step; the cost is in its properties."""
    seconds = sum(step.seconds for step in outcome.steps)
    counts = {"tests": str(len(outcome.steps)), "failures": str(len(outcome.failed)), "errors": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(
        suites, "testsuite", {"name": "rehearsal", **counts, "skipped": "0", "time": f"{seconds:.3f}"}
    )
    properties = SubElement(suite, "properties")
    facts = {name: getattr(outcome, name) for name in ("program", "engine", "dialect")}
    facts |= {} if outcome.cost is None else outcome.cost.facts()
    for name, value in facts.items():
        SubElement(properties, "property", {"name": name, "value": _NOT_IN_XML.sub("", str(value))})
    for step in outcome.steps:
        named = {"classname": "rehearsal", "name": step.title, "time": f"{step.seconds:.3f}"}
        case = SubElement(suite, "testcase", named)
        if not step.passed:
            message = f"{step.expected}: {step.what}"
            failure = SubElement(case, "failure", {"message": message, "type": "rehearsal"})
            failure.text = _NOT_IN_XML.sub("", "\n".join(step.problems))
    indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"
