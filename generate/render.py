"""Templates, and the formatting of the Python files that are made from them."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).parent.parent

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


_ENVIRONMENT.filters.update(codes=codes, cell=cell, repr=repr)


def render(template: str, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """The text of a template. ``filters`` are the functions that only this kind of template uses."""
    environment = _ENVIRONMENT.overlay()
    environment.filters = {**_ENVIRONMENT.filters, **(filters or {})}
    return environment.get_template(template).render(**values)


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Python files with sorted imports, only those that are used, in the repository's format. One run of ruff for all of them."""
    ruff, settings = Path(sys.executable).with_name("ruff"), f"--config={ROOT / 'pyproject.toml'}"
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text, encoding="utf-8")
        for step in (["check", "--select=I,F401,RUF022", "--fix", "--quiet"], ["format", "--quiet"]):
            subprocess.run([ruff, *step, settings, "--no-cache", folder], check=True, cwd=ROOT)
        return {name: (Path(folder) / name).read_text(encoding="utf-8") for name in files}
