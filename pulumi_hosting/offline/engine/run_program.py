"""Runs a Pulumi program in a process of its own: what `pulumi-language-python-exec` is in Pulumi's
distribution.

Started by path with the program's Python, which need not have this package: it imports `pulumi` and the
standard library only.
"""

import sys

if __name__ == "__main__":
    # Python put this file's folder first; its modules would hide those of the standard library.
    del sys.path[0]

import argparse
import asyncio
import logging
import os
import runpy
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

ALREADY_REPORTED = 32
"""Exit status of a program that failed and has reported why."""


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a Pulumi program.")
    for name in ("monitor", "engine", "project", "stack", "organization", "root", "pwd"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallel", type=int, required=True)
    parser.add_argument("--preview", action="store_true")
    parser.add_argument("program")
    return parser.parse_args(arguments)


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


def run(options: argparse.Namespace) -> int:
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    import pulumi
    import pulumi.runtime

    pulumi.runtime.set_all_config(
        pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env()
    )
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=options.monitor,
            engine=options.engine,
            project=options.project,
            stack=options.stack,
            organization=options.organization,
            root_directory=options.root,
            parallel=options.parallel,
            dry_run=options.preview,
        )
    )
    os.chdir(options.pwd)
    # Bytecode is compared with its source by the second: a program edited within a second would run in its
    # old form.
    sys.dont_write_bytecode = True
    sys.argv = [options.program]
    sys.path.insert(0, options.pwd)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    executor = ThreadPoolExecutor(max(options.parallel, 1) * 4)
    loop.set_default_executor(executor)
    # A failed program leaves futures that are never awaited; asyncio would log them.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    def program() -> None:
        if os.path.isdir(options.program) and not os.path.exists(
            os.path.join(options.program, "__main__.py")
        ):
            raise pulumi.RunError(f"unable to find main python program `__main__.py` in `{options.program}`")
        runpy.run_path(options.program, run_name="__main__")

    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(program))
        return 0
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except Exception as error:  # noqa: BLE001  the user's program may raise anything
        pulumi.log.error(
            "Program failed with an unhandled exception:\n" + user_traceback(error, options.program)
        )
        return ALREADY_REPORTED
    finally:
        executor.shutdown(wait=True)
        loop.close()
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(run(parse_arguments(sys.argv[1:])))
