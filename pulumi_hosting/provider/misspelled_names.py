"""Names of ours that a program misspells: the check of a program reports them, and goes on with the names
that are meant.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pulumi_hosting.provider.declaration_mistakes import SourceLine, program_line
from pulumi_hosting.provider.mistake import like
from pulumi_hosting.provider.resource_base import Declaration

Tell = Callable[[str, SourceLine], None]


@contextmanager
def misspelled_names(tell: Tell, modules: Iterable[ModuleType], directory: Path) -> Iterator[None]:
    """Within, ``tell`` takes what is wrong and where the program says it.

    ``modules``: whose names are checked, beside the outputs of resources; ``directory``: the program's.
    """
    finds = {module: module.__getattr__ for module in modules}
    for module, find in finds.items():
        vars(module)["__getattr__"] = partial(_of_module, tell, module, find)
    type.__setattr__(Declaration, "__getattr__", _output_of(tell, directory))
    try:
        yield
    finally:
        for module, find in finds.items():
            vars(module)["__getattr__"] = find
        type.__delattr__(Declaration, "__getattr__")


def _of_module(tell: Tell, module: ModuleType, find: Callable[[str], Any], name: str) -> Any:
    try:
        return find(name)
    except AttributeError:
        meant = None if name.startswith("_") else like(name, find("__all__"))
        if meant is None or (Path(__file__).parents[1] / name).exists():
            raise
        tell(_text(module.__name__, name, meant), program_line())
        return find(meant)


def _output_of(tell: Tell, directory: Path) -> Callable[[Declaration, str], Any]:
    def output(self: Declaration, name: str) -> Any:
        meant = None if name.startswith("_") else like(name, [*self._outputs.values(), "id", "urn"])
        file = Path(sys._getframe(1).f_code.co_filename)
        if (
            meant is None
            or name == meant
            or not file.is_relative_to(directory)
            or "site-packages" in file.parts
        ):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        tell(_text(type(self).__name__, name, meant), program_line())
        return getattr(self, meant)

    return output


def _text(owner: str, name: str, meant: str) -> str:
    return f"{owner} has no {name!r} (did you mean {meant}?). Next: write {meant} in place of {name}"
