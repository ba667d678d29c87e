"""Projects for the offline engine's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.offline.replay import Toys
from tests.offline.warm import WarmPython

Playground = Callable[..., Toys]


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Python that has imported Pulumi already."""
    python = WarmPython(tmp_path_factory.mktemp("python"))
    yield python.command
    python.close()


@pytest.fixture
def playground(tmp_path: Path, warm_python: Path) -> Playground:
    """A toy project whose program is the given text instead of the recordings' one; the stack `dev` exists."""

    def make(source: str, *, form: str = "dynamic") -> Toys:
        toys = Toys(tmp_path, form, warm_python)
        write(toys, source)
        return toys

    return make


def write(toys: Toys, source: str) -> None:
    module = "dyn" if toys.form == "dynamic" else "native"
    (toys.project / "__main__.py").write_text(f"import pulumi\nfrom toykit.{module} import *\n{source}\n")
