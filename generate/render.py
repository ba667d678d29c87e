"""Templates, and the formatting of the Python files that are made from them."""

import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).parent.parent

WIDTH = 110
QUOTES = '"""'

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=False,  # noqa: S701  # Markdown, Python and YAML are written, not HTML
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def codes(items: Iterable[object]) -> str:
    """``a, b`` as Markdown's code."""
    return ", ".join(f"`{item}`" for item in items)


def cell(text: str | None) -> str:
    """A text in a cell of a Markdown table."""
    return (text or "").replace("|", "\\|")


def ticks(markdown: str) -> str:
    """Markdown's code as a docstring has it; a role keeps its own quotes."""
    return re.sub(r"(:\w+:`[^`]+`)|(?<!`)`(?!`)", lambda found: found[1] or "``", markdown)


def docstring(text: str, indent: int = 0) -> str:
    """A docstring: paragraphs are wrapped, each parameter stands on a line of its own."""
    lines: list[str] = []
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        for line in (
            paragraph.split("\n") if paragraph.startswith(":param") else [" ".join(paragraph.split())]
        ):
            hanging = "    " if line.startswith(":param") else ""
            opening = "" if lines else QUOTES
            lines += textwrap.wrap(
                opening + ticks(line),
                WIDTH - indent,
                subsequent_indent=hanging,
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append("")
    is_short = len(lines) == 2 and len(lines[0]) + len(QUOTES) <= WIDTH - indent
    return textwrap.indent("\n".join(lines[:-1]) + (QUOTES if is_short else f"\n{QUOTES}"), " " * indent)


_ENVIRONMENT.filters.update(cell=cell, codes=codes, docstring=docstring, repr=repr)


def render(template: str, filters: Mapping[str, object] | None = None, **values: object) -> str:
    """The text of a template. ``filters`` are the functions that only this kind of template uses."""
    environment = _ENVIRONMENT.overlay()
    environment.filters = {**_ENVIRONMENT.filters, **(filters or {})}
    return environment.get_template(template).render(**values)


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Python files with their used imports, sorted, in the repository's format. One run of ruff for all."""
    ruff, settings = Path(sys.executable).with_name("ruff"), f"--config={ROOT / 'pyproject.toml'}"
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        ours = "--config=lint.isort.known-first-party=['pulumi_hosting']"
        for step in (["check", "--select=I,F401,RUF022", "--fix", ours], ["format"]):
            subprocess.run([ruff, *step, settings, "--quiet", "--no-cache", folder], check=True, cwd=ROOT)
        return {name: (Path(folder) / name).read_text(encoding="utf-8") for name in files}
