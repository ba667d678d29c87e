"""The base of everything a lookup finds: fields that can be read, compared and printed, and not changed."""

from typing import Any


class OutputType:
    """An answer with typed fields. Text, numbers, lists, maps and further records."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({shown})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")
