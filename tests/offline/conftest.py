"""Projects for the offline engine's tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.offline.replay import Toys
from tests.support.warm import WarmPython

Playground = Callable[..., Toys]


@pytest.fixture
def playground(tmp_path: Path, warm_python: WarmPython) -> Playground:
    """A toy project whose program is the given text instead of the recordings' one; the stack `dev` exists."""

    def make(source: str, *, form: str = "dynamic") -> Toys:
        toys = Toys(tmp_path, form, warm_python.command)
        write(toys, source)
        return toys

    return make


def write(toys: Toys, source: str) -> None:
    module = "dyn" if toys.form == "dynamic" else "native"
    (toys.project / "__main__.py").write_text(f"import pulumi\nfrom toykit.{module} import *\n{source}\n")
