"""Runs the program in a process of its own, with a resource monitor that serves it."""

import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc
from pulumi.runtime.proto.resource_pb2 import DeploymentInfo
from pulumi.runtime.proto.resource_pb2_grpc import add_ResourceMonitorServicer_to_server

from ..errors import AlreadyReported, PluginError
from ..providers.plugin_process import LineSink, PipedProcess
from ..storage.project import Project
from .deployment import Deployment
from .engine_service import serve_grpc
from .monitor import Monitor
from .run_program import ALREADY_REPORTED

END_TIMEOUT = 5.0
"""Seconds that the program may take to end after the operation is over."""

_RUN_PROGRAM = Path(__file__).with_name("run_program.py")


@dataclass
class ProgramProcess:
    """Called with a deployment, it runs the program until everything is registered.

    The program ends with the deployment.
    """

    project: Project
    python: str
    environ: Mapping[str, str]
    engine_address: str

    def __call__(self, deployment: Deployment) -> None:
        """Raises `AlreadyReported` when the program failed, `PluginError` when it could not be started."""
        monitor = Monitor(deployment)
        threads = 4 * deployment.options.at_a_time + 8
        server, address = serve_grpc(add_ResourceMonitorServicer_to_server, monitor, threads)

        def take(line: str, is_error: bool) -> None:
            # A program that the engine interrupts prints a traceback; the user need not see it.
            if line and not deployment.steps.failed:
                deployment.events.diagnostic("info#err" if is_error else "info", line)

        process = self._start(monitor.info(), address, take)
        ended = threading.Event()

        def wait() -> None:
            process.wait()
            ended.set()
            monitor.finished.set()

        threading.Thread(target=wait, daemon=True).start()
        deployment.at_end.append(lambda: _end(monitor, server, process, ended))
        deployment.steps.on_failure(monitor.finished.set)
        monitor.finished.wait()
        if ended.is_set() and not deployment.steps.failed and process.returncode != 0:
            if process.returncode == ALREADY_REPORTED:
                raise AlreadyReported
            process.finish_output()
            raise PluginError(f"program exited with non-zero exit code: {process.returncode}")

    def _start(self, info: DeploymentInfo, monitor_address: str, take: LineSink) -> PipedProcess:
        environ = {
            **self.environ,
            "PULUMI_CONFIG": json.dumps(dict(info.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(info.configSecretKeys)),
        }
        settings = {
            "monitor": monitor_address,
            "engine": self.engine_address,
            "project": info.project,
            "stack": info.stack,
            "organization": info.organization,
            "root_directory": str(self.project.root),
            "parallel": info.parallel,
            "dry_run": info.dryRun,
        }
        folder, program = self.project.directory, str(self.project.program)
        command = [self.python, "-u", str(_RUN_PROGRAM), json.dumps(settings), str(folder), program]
        try:
            return PipedProcess(command, folder, environ, subprocess.DEVNULL, take)
        except OSError as error:
            raise PluginError(
                f"could not run {self.python}: {error.strerror}; set PULUMI_PYTHON_CMD or the "
                "virtualenv of Pulumi.yaml"
            ) from None


def _end(monitor: Monitor, server: grpc.Server, process: PipedProcess, ended: threading.Event) -> None:
    monitor.release()
    if not ended.wait(END_TIMEOUT):
        process.kill()
        ended.wait()
    process.finish_output()
    server.stop(0).wait()
