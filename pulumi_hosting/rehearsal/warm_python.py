"""Python processes that start at once: forked from a server that has imported everything already.

``WarmPython.command`` is an executable that behaves as ``python …`` does: in a process, a process group and
an environment of its own, with the caller's standard streams, signals and exit code. Only the imports are
done beforehand. What it starts through ``sys.executable`` is warm as well.

The caller's child is a small client. The server forks a process for it, whose child does the real work:

- The exit code of the work is the client's. A work that dies of a signal ends the client with the same
  signal.
- A signal to the process group reaches the work directly. SIGTERM to the client alone is passed on. When the
  client is killed, the work is killed.
- With options or variables of Python that are not understood here, a fresh Python runs.
- A test that kills processes and looks at what is left uses a plain ``sys.executable``: there parents and
  children are the real ones.
"""

import atexit
import contextlib
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

_LIBRARIES = (
    "dill",
    "google.protobuf.struct_pb2",
    "grpc._server",  # grpc, httpx and uvicorn import the modules with an underscore when they are used
    "grpc.experimental",
    "httpx",
    "pulumi.dynamic",
    "pulumi.runtime",
    "pydantic",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
)
_PACKAGE = "pulumi_hosting"

_CLIENT = """#!{python} -SE
# signal, socket and struct take as long to import as Python to start
import _signal as signal, _socket as socket, marshal, os, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
same_session = os.getsid({server}) == os.getsid(0)
interruptible = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
group = os.getpgrp() if same_session else 0
request = (sys.argv[1:], os.getcwd(), dict(os.environ), group, interruptible)
def pass_on(number, frame):
    connection.send(bytes([number]))
# In one session the work has this process group, and hears an interrupt itself.
signal.signal(signal.SIGINT, signal.SIG_IGN if same_session else pass_on)
signal.signal(signal.SIGTERM, pass_on)
received, sent = os.pipe()
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2, received))
connection.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
os.close(received)
with open(sent, "wb") as request_file:
    marshal.dump(request, request_file)
status = int.from_bytes(connection.recv(2), "big", signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""
_OPTIONS = {"-u", "-P", "-B", "-s"}
_VARIABLES = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE"}
"""What is understood of Python's own options and variables; with others a fresh Python runs."""


PYTHON = sys.executable
"""A Python that imports everything itself."""
_COMMAND = str(Path(sys.argv[1]).with_name("python")) if __name__ == "__main__" else ""


_BEFORE = dict(os.environ)
_SET_BY_IMPORTS: dict[str, str] = {}
"""Variables that a module of ours sets if they are not set."""


class WarmPython:
    """A server in ``folder``; ``command`` stands for ``sys.executable``."""

    def __init__(self, folder: Path) -> None:
        address = str(folder / "warm")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        self._server = subprocess.Popen(
            [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
        )
        if self._server.stdout is None or self._server.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the warm Python did not start: exit code {self._server.wait()}")
        self.command = folder / "python"
        self.command.write_text(
            _CLIENT.format(python=sys.executable, address=address, server=self._server.pid), encoding="utf-8"
        )
        self.command.chmod(0o755)

    @contextlib.contextmanager
    def substituted(self) -> Iterator[None]:
        """Processes that are started inside through ``sys.executable`` are warm."""
        cold, sys.executable = sys.executable, str(self.command)
        try:
            yield
        finally:
            sys.executable = cold

    def close(self) -> None:
        """End the server; it ends when this process dies."""
        self._server.communicate()


@contextlib.contextmanager
def forked() -> Iterator[None]:
    """Processes that are started inside through ``sys.executable`` are warm. If they are already, nothing
    changes, nor outside of Linux: macOS may end a process that forks with its system libraries loaded.
    """
    if sys.executable != PYTHON or sys.platform != "linux":
        yield
        return
    with tempfile.TemporaryDirectory(prefix="python-") as folder:
        python = WarmPython(Path(folder))
        try:
            with python.substituted():
                yield
        finally:
            python.close()


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Each client gets a process that waits for its work and answers how it ended."""

    request_queue_size, max_children = 64, sys.maxsize

    def service_actions(self) -> None:
        super().service_actions()
        if select.select([sys.stdin], [], [], 0)[0]:
            sys.exit()  # who started this has ended


class _Client(socketserver.BaseRequestHandler):
    request: socket.socket
    server: _Server

    def handle(self) -> None:
        _, descriptors, _, _ = socket.recv_fds(self.request, 1, 4)
        if not descriptors:
            return  # the client has died
        self.server.socket.close()
        pid = os.fork()
        if pid == 0:
            self.request.close()
            _work(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        threading.Thread(target=_end_with_server, daemon=True).start()
        threading.Thread(target=_obey, args=(pid, self.request), daemon=True).start()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(OSError):
            self.request.send(status.to_bytes(2, "big", signed=True))


def _end_with_server() -> None:
    """End with the process that started the server. The work can see that it has another parent then."""
    os.read(0, 1)
    os._exit(0)


def _obey(pid: int, connection: socket.socket) -> None:
    """Pass on the signals a client gets; kill the work of one that is gone."""
    with contextlib.suppress(OSError):
        while signals := connection.recv(16):
            for number in signals:
                os.kill(pid, number)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _work(descriptors: list[int]) -> NoReturn:
    """In the child: do what a client's request asks for, and end as its Python would."""
    status = 1
    try:
        *streams, request = descriptors
        with open(request, "rb") as file:
            wanted = marshal.load(file)  # noqa: S302  from our own client
        status = _become(streams, *wanted)
        # What the interpreter does at its end, but for taking every module apart.
        threading._shutdown()  # type: ignore[attr-defined]  # not public, and what the interpreter calls
        atexit._run_exitfuncs()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        if status < 0:
            signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
        os._exit(status)


def _become(
    descriptors: list[int],
    arguments: list[str],
    folder: str,
    environ: dict[str, str],
    group: int,
    interruptible: bool,
) -> int:
    """Run what the arguments say as Python would; the exit code, or the signal it dies of, below zero."""
    signal.signal(signal.SIGINT, signal.default_int_handler if interruptible else signal.SIG_IGN)
    if group:
        os.setpgid(0, group)
    else:
        os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(_SET_BY_IMPORTS | environ)
    options = []
    while arguments and arguments[0] in _OPTIONS:
        options.append(arguments.pop(0))
    search = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if not _is_understood(arguments, environ):
        os.execv(PYTHON, [PYTHON, *options, *arguments])  # noqa: S606  no shell is wanted
    unbuffered = "-u" in options or bool(environ.get("PYTHONUNBUFFERED"))
    for name, number in (("stdout", 1), ("stderr", 2)):
        setattr(sys, name, stream := _stream(number, unbuffered=unbuffered))
        setattr(sys, f"__{name}__", stream)
    sys.executable = _COMMAND
    if "COVERAGE_PROCESS_CONFIG" in environ:
        importlib.import_module("coverage").process_startup()
    sys.dont_write_bytecode = "-B" in options or bool(environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:0] = search
    sys.orig_argv = [PYTHON, *options, *arguments]
    if any(os.path.exists(os.path.join(path, "sitecustomize.py")) for path in search):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")
    try:
        _run(arguments, safe_path="-P" in options or bool(environ.get("PYTHONSAFEPATH")))
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001  whatever a program dies of, its Python prints and ends
        traceback.print_exc()
        return 1
    return 0


def _is_understood(arguments: list[str], environ: dict[str, str]) -> bool:
    """Whether a fork does what a fresh Python would do."""
    special = {
        name for name in environ if name.startswith("PYTHON") and environ[name] != _BEFORE.get(name)
    } - _VARIABLES
    runs = bool(arguments) and (not arguments[0].startswith("-") or arguments[0] in ("-m", "-c"))
    return runs and not special


def _run(arguments: list[str], *, safe_path: bool) -> None:
    first = arguments[0]
    if not safe_path:
        beside = {"-m": os.getcwd(), "-c": ""}.get(first, os.path.dirname(os.path.abspath(first)))
        sys.path.insert(0, beside)
    if first == "-m":
        name = arguments[1]
        sys.argv = arguments[1:]
        # it is run, not imported
        sys.modules.pop(name if f"{name}.__main__" not in sys.modules else f"{name}.__main__", None)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *arguments[2:]]
        code = compile(arguments[1], "<string>", "exec")
        exec(code, {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102  # as python -c
    else:
        sys.argv = arguments
        runpy.run_path(first, run_name="__main__")


def _stream(number: int, *, unbuffered: bool) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        open(number, "wb", 0 if unbuffered else -1, closefd=False),
        "utf-8",
        "strict" if number == 1 else "backslashreplace",
        line_buffering=number == 2 or os.isatty(number),
        write_through=unbuffered,
    )


def _preload() -> None:
    """Import what our processes use, and every module of ours."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    package = importlib.import_module(_PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."):
        if not module.name.endswith(".__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # of an extra that is not installed
                if (error.name or "").startswith(_PACKAGE):
                    raise
    gc.collect()
    gc.freeze()  # the collector of a forked process would touch, and so copy, every page


if __name__ == "__main__":
    del sys.path[0]
    _preload()
    _SET_BY_IMPORTS.update({name: os.environ[name] for name in os.environ.keys() - _BEFORE.keys()})
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the work
    with _Server(sys.argv[1], _Client) as server:
        os.write(1, b"ready\n")
        server.serve_forever(0.05)
