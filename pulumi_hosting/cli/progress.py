"""What a person sees while a command waits: a bar on standard error, if that is a terminal and the extra
``progress`` (rich) is installed.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from pulumi_hosting.api.secrets import clean_text

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class ProgressLine:
    """The bar, from the first step to the end of the ``with`` block; nothing if there is none."""

    def __init__(self) -> None:
        self._bar = _bar()

    def step(self, number: int, total: int | None, title: str) -> None:
        """The step ``number``, from 1, begins. ``total``: of how many; ``None`` if that is not known."""
        if self._bar is None:
            return
        of = "" if total is None else f" of {total}"
        text = clean_text(f"step {number}{of}: {title}")
        if not self._bar.tasks:
            self._bar.add_task(text, total=total)
        self._bar.update(self._bar.tasks[0].id, total=total, completed=number - 1, description=text)
        self._bar.start()

    def above(self, show: Callable[[str], None]) -> Callable[[str], None]:
        """``show``, which prints a line, so that the line stands above the bar."""

        def shown(text: str) -> None:
            if self._bar is None or not self._bar.tasks:
                show(text)
                return
            self._bar.stop()
            show(text)
            self._bar.start()

        return shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> "Bar | None":
    """rich chooses colours and characters as the terminal and ``NO_COLOR`` want them."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column
    except ImportError:
        return None
    console = Console(stderr=True)
    if not console.is_interactive:  # a dumb terminal draws nothing over what it shows
        return None
    title = TextColumn(
        "{task.description}",
        markup=False,  # a title is text of the program
        table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
    )
    return Progress(BarColumn(20), title, console=console, transient=True, expand=True)
