"""Python processes that start at once: forked from one that has imported Pulumi already.

Half a second of every operation is two Pythons importing `pulumi`. `WarmPython.command` is an executable that behaves as `python -u …`
does, in a process, a process group and an environment of its own; only the imports are done beforehand.
"""

import contextlib
import importlib
import io
import marshal
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

_CLIENT = """#!{python} -SE
import marshal, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the forked one by itself: they share a process group
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ), os.getpgrp()))
socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
connection.sendall(request)
status = connection.recv(1)
os._exit(status[0] if status else 1)
"""


class WarmPython:
    def __init__(self, folder: Path) -> None:
        address = str(folder / "warm")
        self._server = subprocess.Popen([sys.executable, "-u", __file__, address], stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        self._server.stdout.readline()
        self.command = folder / "warm-python"
        self.command.write_text(_CLIENT.format(python=sys.executable, address=address))
        self.command.chmod(0o755)

    def close(self) -> None:
        assert self._server.stdout is not None
        self._server.terminate()
        self._server.wait()
        self._server.stdout.close()


def _serve(address: str) -> int:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _supervise(connection)
        connection.close()


def _supervise(connection: socket.socket) -> int:
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    wanted = int.from_bytes(size, "big")
    request = b""
    while len(request) < wanted:
        request += connection.recv(wanted - len(request))
    child = os.fork()
    if child == 0:
        connection.close()
        return _become(descriptors, *marshal.loads(request))  # noqa: S302  from our own client
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(BrokenPipeError):
        connection.send(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
    os._exit(0)


def _become(descriptors: list[int], arguments: list[str], folder: str, environ: dict[str, str], group: int) -> int:
    with contextlib.suppress(OSError):
        os.setpgid(0, group)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout, sys.stderr = (_unbuffered(number) for number in (1, 2))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:0] = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    arguments = [argument for argument in arguments if argument != "-u"]
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            sys.path.insert(0, folder)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, os.path.dirname(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001  whatever a program dies of, its Python prints and ends
        traceback.print_exc()
        return 1
    return 0


def _unbuffered(number: int) -> Any:
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding="utf-8", write_through=True)


def _import() -> None:
    """What every program and every dynamic provider begins with."""
    for name in ("dill", "grpc", "pulumi", "pulumi.dynamic", "pulumi.runtime"):
        importlib.import_module(name)


if __name__ == "__main__":
    del sys.path[0]
    _import()
    sys.exit(_serve(sys.argv[1]))
