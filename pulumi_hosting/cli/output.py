"""How commands answer: text for people, JSON for machines, Markdown for pull requests."""

import errno
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name

import click

from pulumi_hosting.cli.lazy import Work, works_in
from pulumi_hosting.reports.report import Points, Report, Section, Summary, Table, Unusable

SCHEMA_VERSION = 1
"""Of what ``--json`` prints: it grows when a field goes or changes its meaning, not when one comes."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
markdown_option = click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print Markdown, for a comment on a pull request."
)


def reports(place: str, *extras: str, markdown: bool = False, asks: bool = True) -> Callable[[Work], Work]:
    """The work of a command that answers with a :class:`Report`: see :func:`works_in`. ``asks``: whether it
    is given ``asking``, with which it connects to the account.
    """

    def decorated(declaration: Work) -> Work:
        make = works_in(place, *extras)(declaration)

        @wraps(declaration)
        def work(*, as_json: bool, as_markdown: bool = False, **given: object) -> None:
            if asks:
                given["asking"] = resolve_name("pulumi_hosting.cli.connection:reading_account")
            finish(make(**given), as_json=as_json, as_markdown=as_markdown)

        return json_option(markdown_option(work) if markdown else work)

    return decorated


def finish(report: Report, *, as_json: bool, as_markdown: bool = False) -> None:
    """Print the report in its form, and end the command."""
    if as_json:
        print_json(report.facts)
    elif as_markdown:
        click.echo(as_markdown_text(report))
    else:
        click.echo("\n".join(map(_text_of, report.sections)))
    for warning in report.warnings:
        print_warning(warning)
    sys.exit(report.exit_code)


def as_markdown_text(report: Report) -> str:
    """What is urgent first, then the answer."""

    def rank(section: Section) -> int:
        return 0 if getattr(section, "urgent", False) else 1 if isinstance(section, Summary) else 2

    return "\n\n".join(_markdown_of(section) for section in sorted(report.sections, key=rank) if section)


def _text_of(section: Section) -> str:
    match section:
        case Table():
            return table(section.headers, section.rows)
        case Summary():
            return f"{section.label + ':':<8} {section.text}"
        case Points():
            return "\n".join(f"{section.label}: {line}" for line in section.lines)
        case _:
            return section


def _markdown_of(section: Section) -> str:
    match section:
        case Table():
            rows = [[*row] for row in section.rows]
            for row in rows:
                for column in section.foreign:
                    row[column] = inline_code(str(row[column]))
            shown = markdown_table([header.capitalize() for header in section.headers], rows)
            if not section.title:
                return shown
            return f"<details><summary>{section.title}</summary>\n\n{shown}\n\n</details>"
        case Summary():
            return f"**{section.label.capitalize()}:** {section.text}"
        case Points():
            lines = "\n".join(f"- {inline_code(line)}" for line in section.lines)
            return f"{section.title}:\n\n{lines}"
        case _:
            return section


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest value; two spaces between them.

    >>> print(table(("ID", "NAME"), [(1, "web"), (20001, "")]))
    ID     NAME
    1      web
    20001
    """
    cells = [tuple(headers), *(tuple(_cell(value) for value in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same as a table of Markdown; what would end a cell is escaped.

    >>> print(markdown_table(("ID", "NAME"), [(1, "a|b")]))
    | ID | NAME |
    |---|---|
    | 1 | a\\|b |
    """
    lines = [f"| {' | '.join(headers)} |", "|" + "---|" * len(headers)]
    cells = ((_cell(value).replace("|", "\\|") for value in row) for row in rows)
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)])


def inline_code(text: str) -> str:
    """A text of the account or a program in Markdown: nothing in it is a link, a mention, or HTML.

    >>> inline_code("web @org `x`")
    "`web @org 'x'`"
    """
    plain = " ".join(text.replace("`", "'").split())
    return f"`{plain}`" if plain else ""


def json_text(value: object) -> str:
    """Indented JSON; money as a decimal text, as in the API."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def printable(text: str) -> str:
    """Foreign text for a terminal, which obeys what is not printable.

    >>> printable("web\\x1b[2J")
    'web?[2J'
    """
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def key_values(config: Iterable[str]) -> dict[str, str]:
    """The values of ``--config KEY=VALUE``."""
    if any(not entry.partition("=")[0] or "=" not in entry for entry in config):
        raise click.BadParameter("must read KEY=VALUE", param_hint="--config")
    return dict(entry.partition("=")[::2] for entry in config)


def print_json(facts: Mapping[str, object]) -> None:
    """One object. Half of a surrogate pair, which a service may write, cannot be printed."""
    click.echo(json_text({"schema_version": SCHEMA_VERSION, **facts}).encode(errors="replace").decode())


def write_file(path: Path | None, text: str) -> None:
    """Write the file that an option names. Raises ``Unusable``."""
    try:
        if path is not None:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}. Next: name another file") from None


def print_warning(text: str) -> None:
    """To standard error, so that JSON on standard output stays whole."""
    click.echo(f"warning: {text}", err=True)


def cannot_listen(host: str, port: int, error: OSError) -> str:
    """Why a command does not listen there, and what to do."""
    is_taken = error.errno == errno.EADDRINUSE
    why = "another program uses it" if is_taken else error.strerror or str(error)
    return (
        f"cannot listen on {host}, port {port}: {why}. Next: give another --{'port' if is_taken else 'host'}"
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return " ".join(str(value).split())
