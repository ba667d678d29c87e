"""The bar below a report: on a terminal alone, and never in the way of the lines."""

import io

import pytest

from pulumi_hosting.cli.progress import CLEAR, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str) -> list[str]:
    """What a terminal shows in the end, line by line."""
    return [line.split(CLEAR)[-1] for line in text.split("\n")]


def test_the_bar_stays_below_the_lines_and_goes_at_the_end() -> None:
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.line("engine: offline")
        progress.step(1, None, "preview")
        assert shown(terminal.getvalue()) == ["engine: offline", f"[{'-' * 20}] step 1: preview"]
        progress.line("ok     preview")
        progress.step(3, 4, "destroy")
        assert shown(terminal.getvalue()) == [
            "engine: offline",
            "ok     preview",
            f"[{'#' * 10}{'-' * 10}] step 3 of 4: destroy",
        ]
    assert shown(terminal.getvalue()) == ["engine: offline", "ok     preview", ""]


def test_a_long_title_does_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    with Progress(terminal) as progress:
        progress.step(1, 2, "drift 1: " + "web.name, " * 40)
        assert len(shown(terminal.getvalue())[-1]) == 59


def test_without_a_terminal_there_are_only_lines() -> None:
    stream = io.StringIO()
    with Progress(stream) as progress:
        progress.step(1, 2, "preview")
        progress.line("ok     preview")
    assert stream.getvalue() == "ok     preview\n"
