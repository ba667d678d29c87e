"""How commands answer: tables for people, JSON for machines, Markdown for pull requests."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import click


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


def json_text(value: Any) -> str:
    """Indented JSON; money as a decimal text, as in the API."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def money(amount: Decimal | None, currency: str | None) -> str:
    """An amount with two digits, or ``not known``.

    >>> money(Decimal("5"), "EUR"), money(None, "EUR")
    ('5.00 EUR', 'not known')
    """
    return "not known" if amount is None else f"{amount:.2f} {currency or ''}".rstrip()


def totals(amounts: Iterable[tuple[Decimal | None, str | None]]) -> str:
    """The sum in each currency; free things do not count.

    >>> totals([(Decimal(1), "EUR"), (Decimal(0), None), (Decimal(2), "EUR")]), totals([])
    ('3.00 EUR', '0.00')
    """
    sums: dict[str, Decimal] = {}
    for amount, currency in amounts:
        if amount:
            sums[currency or ""] = sums.get(currency or "", Decimal(0)) + amount
    return ", ".join(money(amount, currency) for currency, amount in sorted(sums.items())) or "0.00"


def plural(kind: str) -> str:
    """Objects of a kind, in a sentence.

    >>> plural("ssh_key")
    'ssh keys'
    """
    return f"{kind.replace('_', ' ')}s"


def print_warning(text: str) -> None:
    """To standard error, so that JSON on standard output stays whole."""
    click.echo(f"warning: {text}", err=True)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return " ".join(str(value).split())


def json_option(command: Any) -> Any:
    """``--json``, the same for every command."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def markdown_option(command: Any) -> Any:
    """``--markdown``, the same for every command."""
    return click.option(
        "--markdown", "as_markdown", is_flag=True, help="Print Markdown, for a comment on a pull request."
    )(command)
