"""Results as JUnit's XML."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Case:
    """One test case. ``kind``: ``failure``, ``error`` or ``skipped`` if it did not pass, else empty;
    ``message`` and ``text`` say why.
    """

    classname: str
    name: str
    kind: str = ""
    message: str = ""
    text: str = ""
    seconds: float = 0.0


def junit(name: str, cases: Sequence[Case], properties: Mapping[str, object] | None = None) -> str:
    """A test suite. Characters that XML cannot have are left out: a program or a service wrote some texts."""
    kinds = Counter(case.kind for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(kinds["failure"]), "errors": str(kinds["error"])}
    seconds = sum(case.seconds for case in cases)
    root = Element("testsuites", counts)
    facts = {"name": name, **counts, "skipped": str(kinds["skipped"]), "time": f"{seconds:.3f}"}
    suite = SubElement(root, "testsuite", facts)
    if properties:
        parent = SubElement(suite, "properties")
        for key, value in properties.items():
            SubElement(parent, "property", {"name": key, "value": str(value)})
    for case in cases:
        about = {"classname": case.classname, "name": case.name, "time": f"{case.seconds:.3f}"}
        shown = SubElement(suite, "testcase", about)
        if case.kind:
            why = {"message": case.message, "type": case.classname}
            SubElement(shown, case.kind, why).text = case.text
    indent(root)
    text = _NOT_IN_XML.sub("", tostring(root, encoding="unicode"))
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
