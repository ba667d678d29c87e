"""Files that a command writes, and of which none may be there before."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pulumi_hosting.reports.report import CannotAnswer, Unusable


def must_be_free(files: Iterable[Path]) -> None:
    """Raise ``Unusable`` if one of them exists."""
    if there := [str(file) for file in files if file.exists()]:
        exist = f"{' and '.join(there)} exist{'' if there[1:] else 's'} already"
        raise Unusable(f"{exist}; nothing was written. Next: give another name")


def write(files: Mapping[Path, str]) -> None:
    """Write them all. Raises ``Unusable`` if one exists, and ``CannotAnswer`` for what the system refuses."""
    must_be_free(files)
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise CannotAnswer(f"{path} cannot be written to: {error.strerror or error}") from None
