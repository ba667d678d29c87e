"""``emulator --export``: an emulator that goes on in the background, and its address for a shell."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any

ReadyLine = Mapping[str, Any]


def start(serve: Callable[[Callable[[ReadyLine], None]], None], *, keep_stderr: bool) -> ReadyLine:
    """Serve in a process of its own, which outlives this one and its terminal; return when it is ready.

    ``serve`` is given the function to call with the ready line. From then on the new process has no standard
    input and output, and standard error only with ``keep_stderr``: a shell that captures the output does not
    wait for it. If it ends before it is ready, this process ends with its exit code.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _serve(serve, writing, keep_stderr)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    if not text:
        _, status = os.waitpid(pid, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    found: ReadyLine = json.loads(text)
    return found


def _serve(serve: Callable[[Callable[[ReadyLine], None]], None], writing: int, keep_stderr: bool) -> None:
    """The whole life of the new process. Never returns."""

    def ready(line: ReadyLine) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1) if keep_stderr else (0, 1, 2):
            os.dup2(nothing, number)
        os.close(nothing)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(line))

    code = 1
    try:
        os.setsid()
        serve(ready)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  # shown as Python shows it; the process must not go on
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)  # what this process shares with the one that started it is not ended twice


def exports(line: ReadyLine) -> str:
    """Commands for a POSIX shell that set the variables of every program to this emulator.

    >>> print(exports({"live_key": "k", "base_url": "u", "control_url": "c", "pid": 7}))
    export HOSTING_API_KEY=k
    export HOSTING_BASE_URL=u
    export HOSTING_EMULATOR_CONTROL_URL=c
    export HOSTING_EMULATOR_PID=7
    """
    variables = {
        "HOSTING_API_KEY": line["live_key"],
        "HOSTING_BASE_URL": line["base_url"],
        "HOSTING_EMULATOR_CONTROL_URL": line["control_url"],
        "HOSTING_EMULATOR_PID": line["pid"],
    }
    return "\n".join(f"export {name}={shlex.quote(str(value))}" for name, value in variables.items())
