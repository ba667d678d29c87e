"""The bar while a command waits: on a terminal alone, with rich alone, and never in the way of the lines. And
colours: as the terminal and ``NO_COLOR`` want.
"""

import io
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr

import click
import pytest
from click.testing import CliRunner

from pulumi_hosting.cli import main
from pulumi_hosting.cli.progress import ProgressLine

_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    @property
    def shown(self) -> list[str]:
        """What it shows in the end, line by line, without colours. It knows what rich sends: to the start of
        the line, a line up, and clear the line.
        """
        lines, row = [""], 0
        for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\n|\r)", self.getvalue()):
            control = _CONTROL.fullmatch(part)
            if part == "\n":
                row += 1
                lines += [""] * (row == len(lines))
            elif control is None:
                lines[row] += part.strip("\r")
            elif control[2] == "A":
                row -= int(control[1])
            elif control[2] == "K":
                lines[row] = ""
            else:
                assert control[2] in "mhl", part
        return "\n".join(line.rstrip() for line in lines).rstrip("\n").split("\n")

    @property
    def has_colours(self) -> bool:
        return any(control[2] == "m" for control in _CONTROL.finditer(self.getvalue()))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """60 characters wide."""
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "60", "LINES": "20"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def told(progress: ProgressLine) -> Callable[[str], None]:
    return progress.above(lambda text: click.echo(text, err=True))


def steps(line: Callable[[str], None], progress: ProgressLine) -> None:
    line("engine: offline")
    progress.step(1, None, "preview [red]")
    line("ok     preview")
    progress.step(3, 4, "destroy")


def test_the_bar_stays_below_the_lines_and_goes_at_the_end(terminal: Terminal) -> None:
    with redirect_stderr(terminal), ProgressLine() as progress:
        line = told(progress)
        line("engine: offline")
        assert terminal.shown == ["engine: offline"]
        progress.step(1, None, "preview [red]")
        *above, bar = terminal.shown
        assert above == ["engine: offline"]
        assert bar.endswith(" step 1: preview [red]")
        line("ok     preview")
        progress.step(3, 4, "destroy")
    assert terminal.shown == ["engine: offline", "ok     preview"]
    assert "step 3 of 4: destroy" in terminal.getvalue()
    assert terminal.has_colours
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h")  # the cursor


def test_a_long_title_and_its_control_characters_do_not_wrap(terminal: Terminal) -> None:
    with redirect_stderr(terminal), ProgressLine() as progress:
        progress.step(1, 2, "drift 1:\n\x1b[2J" + "web.name, " * 40)
        (bar,) = terminal.shown
        assert len(bar) == 60
        assert "drift 1: web.name" in bar


def test_no_color_is_a_bar_without_colours(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stderr(terminal), ProgressLine() as progress:
        steps(told(progress), progress)
    assert "step 3 of 4: destroy" in terminal.getvalue()
    assert not terminal.has_colours


@pytest.mark.parametrize("without", ["a terminal", "a terminal that draws", "rich"])
def test_there_are_only_lines_without(
    without: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    if without == "a terminal":
        monkeypatch.setattr(Terminal, "isatty", lambda self: False)
        monkeypatch.setenv("FORCE_COLOR", "1")
    elif without == "rich":
        monkeypatch.setitem(sys.modules, "rich.console", None)
    else:
        monkeypatch.setenv("TERM", "dumb")
    with redirect_stderr(terminal), ProgressLine() as progress:
        steps(told(progress), progress)
    assert terminal.getvalue() == "engine: offline\nok     preview\n"


@pytest.mark.parametrize(
    ("environ", "has_colours"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
)
def test_a_report_has_the_colours_that_the_terminal_wants(
    environ: dict[str, str], has_colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    without_account = {"HOSTING_API_KEY": "", "HOSTING_BASE_URL": ""}
    answer = CliRunner().invoke(main, ["doctor"], env=without_account | environ, color=True)
    assert answer.exit_code == 1
    assert ("\x1b[" in answer.stdout) is has_colours
