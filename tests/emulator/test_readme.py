"""The Python of the emulator's README runs as it is printed there."""

import re
from pathlib import Path
from typing import Any

import pulumi_hosting.emulator

README = Path(pulumi_hosting.emulator.__file__).with_name("README.md").read_text()


def test_the_example_of_an_emulator_in_process_runs() -> None:
    section = README.split("## From Python\n")[1].split("\n## ")[0]
    example = next(
        block
        for block in re.findall(
            r"(?:^(?:    "
            r".*)?\n)+",
            section,
            re.MULTILINE,
        )
        if "Transport" in block
    )
    code = "\n".join(line[4:] for line in example.splitlines())
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102  # the text of our own README
    assert names["http"].get("/v1/health").status_code == 200
