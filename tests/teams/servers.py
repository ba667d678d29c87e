"""A Redis server of our own, and a proxy that cuts machines off from it."""

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import redis

from tests.support.ports import free_port

IS_HERE = shutil.which("redis-server") is not None
"""Whether the server is on PATH."""


class RedisServer:
    """A server without persistence. It has been up for longer than a lease lasts, unless it is restarted."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._start()
        with redis.Redis(port=self.port) as client:
            known = {"run": client.info("server")["run_id"], "since": "1"}
            client.hset("hosting:server", mapping=known)

    def _start(self) -> None:
        options = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), *options], stdout=subprocess.DEVNULL
        )
        with redis.Redis(port=self.port) as client:
            for _ in range(200):
                with suppress(redis.RedisError):
                    client.ping()
                    return
                time.sleep(0.05)
        raise RuntimeError("redis-server does not answer")

    def restart_empty(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Proxy:
    """Passes on what comes to its port, until it is cut."""

    def __init__(self, port: int) -> None:
        self._to, self._open, self._lock = port, set[socket.socket](), threading.Lock()
        self._is_cut = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, work: Callable[..., None], *given: socket.socket) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        thread.start()
        self._threads.append(thread)

    def cut(self) -> None:
        """Nothing passes, and neither end is told: packets are lost."""
        self._is_cut = True

    def heal(self) -> None:
        self._is_cut = False
        with self._lock:
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def close(self) -> None:
        self.heal()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open |= {near, far}
            for source, target in ((near, far), (far, near)):
                self._start(self._pass_on, source, target)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._is_cut:
                    target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
        source.close()
