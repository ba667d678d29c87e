"""Runs a Pulumi program in a process of its own: what `pulumi-language-python-exec` is in Pulumi's
distribution.

Started by path with the program's Python, which need not have this package: it imports `pulumi` and the
standard library only.
"""

import sys

if __name__ == "__main__":
    # Python put this file's folder first; its modules would hide those of the standard library.
    del sys.path[0]

import asyncio
import json
import logging
import os
import runpy
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

ALREADY_REPORTED = 32
"""Exit status of a program that failed and has reported why."""


def user_traceback(error: BaseException, program: str) -> str:
    """The traceback of an exception, starting with the first frame of the program."""
    frames = traceback.extract_tb(error.__traceback__)
    folder = program if os.path.isdir(program) else os.path.dirname(program)
    for index, frame in enumerate(frames):
        # "<frozen runpy>" is not a file of the current folder.
        if not frame.filename.startswith("<") and os.path.abspath(frame.filename).startswith(folder + os.sep):
            return "".join(
                traceback.format_exception(type(error), error, error.__traceback__, limit=index - len(frames))
            )
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def end_with(parent: int) -> None:
    """End this process when the engine has died: nothing can be registered any more."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def run(settings: dict[str, Any], directory: str, program: str) -> int:
    """``settings``: those of Pulumi's SDK. Returns the exit code."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    import pulumi
    import pulumi.runtime

    pulumi.runtime.set_all_config(
        pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env()
    )
    pulumi.runtime.configure(pulumi.runtime.Settings(**settings))
    os.chdir(directory)
    # Bytecode is compared with its source by the second: a program edited within a second would run in its
    # old form.
    sys.dont_write_bytecode = True
    sys.argv = [program]
    sys.path.insert(0, directory)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(settings["parallel"] * 4)
    loop.set_default_executor(executor)
    # A failed program leaves futures that are never awaited; asyncio would log them.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    def run_program() -> None:
        if os.path.isdir(program) and not os.path.exists(os.path.join(program, "__main__.py")):
            raise pulumi.RunError(f"unable to find main python program `__main__.py` in `{program}`")
        runpy.run_path(program, run_name="__main__")

    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(run_program))
        return 0
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except Exception as error:  # noqa: BLE001  the user's program may raise anything
        pulumi.log.error("Program failed with an unhandled exception:\n" + user_traceback(error, program))
        return ALREADY_REPORTED
    finally:
        executor.shutdown(wait=True)
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(run(json.loads(sys.argv[1]), *sys.argv[2:]))
