"""The outcome of a rehearsal as Markdown and as JUnit's XML."""

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pulumi_hosting.cli.output import markdown_table

if TYPE_CHECKING:
    from pulumi_hosting.rehearsal.outcome import Outcome

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def markdown(outcome: "Outcome") -> str:
    """For a comment on a pull request: the summary and the cost first, what failed next, all steps folded."""
    parts = [f"**Rehearsal:** {outcome.conclusion} ({len(outcome.steps)} steps, engine {outcome.engine})"]
    if outcome.cost is not None:
        parts.append(f"**Cost:** {outcome.cost}")
    for step in outcome.steps:
        if not step.passed:
            shown = "\n".join(f"    {line}" for line in step.problems)
            parts.append(f"**{step.title}**: {step.expected}: {step.what}\n\n{shown}".rstrip())
    rows = [
        ("ok" if step.passed else "FAILED", step.title, f"{step.expected}: {step.what}", step.requests)
        for step in outcome.steps
    ]
    all_steps = markdown_table(("", "Step", "Result", "Requests"), rows)
    parts.append(f"<details><summary>All steps</summary>\n\n{all_steps}\n\n</details>")
    return "\n\n".join(parts)


def junit(outcome: "Outcome") -> str:
    """A test suite with one test case for each step; the cost is in its properties."""
    seconds = sum(step.seconds for step in outcome.steps)
    counts = {"tests": str(len(outcome.steps)), "failures": str(len(outcome.failed)), "errors": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(
        suites, "testsuite", {"name": "rehearsal", **counts, "skipped": "0", "time": f"{seconds:.3f}"}
    )
    properties = SubElement(suite, "properties")
    facts = {"program": outcome.program, "engine": outcome.engine, "dialect": outcome.dialect}
    facts |= {} if outcome.cost is None else outcome.cost.facts()
    for name, value in facts.items():
        SubElement(properties, "property", {"name": name, "value": _NOT_IN_XML.sub("", value)})
    for step in outcome.steps:
        facts = {"classname": "rehearsal", "name": step.title, "time": f"{step.seconds:.3f}"}
        case = SubElement(suite, "testcase", facts)
        if not step.passed:
            message = f"{step.expected}: {step.what}"
            failure = SubElement(case, "failure", {"message": message, "type": "rehearsal"})
            failure.text = _NOT_IN_XML.sub("", "\n".join(step.problems))
    indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, encoding="unicode") + "\n"
