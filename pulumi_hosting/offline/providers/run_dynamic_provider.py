"""Runs the provider of dynamic resources (`python -m pulumi.dynamic`), and ends it when the engine has died.

The provider serves until it is interrupted. A killed engine interrupts no one, so its provider would wait for
ever. It is ended as after Ctrl-C: it is asked to cancel, finishes its steps, and ends. Only the first
interrupt counts: another one would cut the steps that are under way.

Started by path with the program's Python, which need not have this package: it imports `pulumi` and the
standard library only.
"""

import contextlib
import os
import runpy
import signal
import sys
import threading

_MODULE, _SERVER = "pulumi.dynamic", "DynamicResourceProviderServicer"


def interrupt(*signal_and_frame: object) -> None:
    """Handle the first SIGINT. Any later one does nothing."""
    signal.signal(signal.SIGINT, lambda *signal_and_frame: None)
    raise KeyboardInterrupt


def end_with_engine(engine: int) -> None:
    """Interrupt the main thread when the engine, which holds the other end of the pipe `engine`, has died."""
    while os.read(engine, 64):
        pass  # the engine writes nothing; whatever comes is no end
    if signal.getsignal(signal.SIGINT) is not interrupt:
        return  # it was interrupted already
    try:
        getattr(sys.modules["__main__"], _SERVER)().Cancel(None, None)
    finally:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def main() -> None:
    # What a provider runs and reads gets no part of the pipe.
    engine = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # In the background job of a script interrupts are ignored.
    signal.signal(signal.SIGINT, interrupt)
    threading.Thread(target=end_with_engine, args=(engine,), name="engine", daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):  # before it serves
        runpy.run_module(_MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:
        sys.path[0] = os.getcwd()  # as with `python -m`
    main()
