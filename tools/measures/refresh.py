"""The walk of a refreshed server: from the answer to a GET to the state that Pulumi is given.

A person changed the server's notes to a number that occurs nowhere else, so only the answer has it. The walk
begins when the transport has the answer, and ends when ``read`` of the dynamic provider returns. The answer
is a page of a list, as in most refreshes.

- A **function** of the walk is a distinct function of ours, generated ones included, whose frame holds the
  number within that time, in any form: raw, parsed, in a model, in the outputs. They stand in the order in
  which they first hold it.
- A **step** goes to the next function that holds the number, called with it or returned to with it.
- A **return** is a step into a folder that the walk has left before; a folder is one of the first level below
  the package.
"""

import gc
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from types import CodeType, FrameType
from typing import Any

import httpx

from tools.measures.frontends import TARIFF, account
from tools.measures.walk import Tracer, is_ours, name_of

NUMBER = 862_413
"""The server's notes; the tariff's number occurs in other places of the answer."""


@dataclass(slots=True)
class Call:
    """A call of a function of ours that goes on; ``holds``: whether its frame held the number already."""

    frame: FrameType
    holds: bool


@dataclass(slots=True)
class Arrival:
    """Records the steps of the number, from ``begin()`` on."""

    tracer: Tracer = field(default_factory=lambda: Tracer(NUMBER, answered=True))
    steps: list[CodeType] = field(default_factory=list)
    _calls: list[Call] = field(default_factory=list)
    _began: bool = False

    def begin(self) -> None:
        self._began = True

    @property
    def functions(self) -> list[str]:
        """The functions of the walk."""
        return [*dict.fromkeys(map(name_of, self.steps))]

    @property
    def returns(self) -> int:
        """The steps into a folder that was left before."""
        folders = [function.partition("/")[0] for function in map(name_of, self.steps)]
        entered = [
            folder for before, folder in zip(["", *folders], folders, strict=False) if folder != before
        ]
        return sum(folder in entered[:index] for index, folder in enumerate(entered))

    @property
    def longest(self) -> tuple[int, str]:
        """The longest function of the walk: its lines, and its name."""
        return max((length(code), name_of(code)) for code in self.steps)

    def profile(self, frame: FrameType, event: str, result: Any) -> None:
        """For ``sys.setprofile``."""
        if event not in ("call", "return") or not is_ours(frame.f_code):
            return
        if event == "call":
            self._calls.append(Call(frame, self._note(frame, frame.f_locals)))
        elif self._calls and self._calls[-1].frame is frame:
            call = self._calls.pop()
            returned = {"": result}
            if not call.holds:
                self._note(frame, {**frame.f_locals, **returned})
            if self._calls and self._note(self._calls[-1].frame, returned):
                self._calls[-1].holds = True

    def _note(self, frame: FrameType, variables: dict[str, Any]) -> bool:
        """Whether the variables hold the number; if so, the walk has come to this frame."""
        if not self._began or not self.tracer.forms(variables):
            return False
        self.steps.append(frame.f_code)
        return True


def length(code: CodeType) -> int:
    """The lines of a function, from its first decorator or ``def``."""
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    return max(ends) - code.co_firstlineno + 1


def refresh_walk() -> Arrival:
    """The walk, in this process: a real client over the emulator's transport."""
    from pulumi.dynamic import Config, ConfigureRequest

    from pulumi_hosting.provider.dynamic import ServerProvider
    from pulumi_hosting.provider.provider_session import SESSION
    from pulumi_hosting.session.account_snapshot import ORDERS_AND_SERVERS

    def provider() -> ServerProvider:
        made = ServerProvider()
        made.configure(ConfigureRequest(Config({}, "shop")))
        return made

    arrival = Arrival()

    def answered(request: httpx.Request, answer: httpx.Response) -> None:
        if request.method == "GET" and str(NUMBER).encode() in answer.read():
            arrival.begin()

    with account(port=2, answered=answered) as core, redirect_stdout(StringIO()):
        first = provider()
        inputs = first.check({}, {"name": "web-1", "tariff_id": TARIFF, "os": "debian-12"}).inputs
        made = first.create(inputs)
        core.store.servers[int(made.id)].notes = str(NUMBER)
        SESSION.reads.forget(ORDERS_AND_SERVERS)  # a refresh is a process of its own
        refreshing = provider()
        gc.disable()  # what a collection closes is no part of the walk
        sys.setprofile(arrival.profile)
        try:
            found = refreshing.read(made.id, made.outs)
        finally:
            sys.setprofile(None)
            gc.enable()
    if found.outs.get("notes") != str(NUMBER):
        raise RuntimeError("the refresh did not find the notes that were changed")
    return arrival
