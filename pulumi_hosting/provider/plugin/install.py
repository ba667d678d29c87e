"""Putting the plugin where Pulumi's CLI looks for it."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.local_files import LocalFilesError
from pulumi_hosting.provider.version import version as version

EXECUTABLE = "pulumi-resource-hosting"


class InstallError(Exception):
    """The plugin could not be put in place. ``str()`` is one line that says why and what to do."""


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory of this version's plugin, whether it is there or not: below ``PULUMI_HOME``, else
    ``~/.pulumi``.
    """
    home: str | Path | None = environ.get("PULUMI_HOME")
    if not home:
        import pwd  # not on Windows

        # As the CLI does: the home of this process's user, and $HOME if the user has no entry, as in a
        # container that runs as any user.
        try:
            of_user = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            of_user = environ.get("HOME") or os.sep
        home = Path(of_user, ".pulumi")
    return Path(home) / "plugins" / f"resource-hosting-v{version()}"


def install(pulumi: str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Make the plugin of this Python installation known to Pulumi, and tell where it is.

    ``pulumi``: the CLI to ask; else the one on PATH; if there is none, the plugin is put where a CLI will
    find it. What was there of the same version is replaced. Raises :class:`InstallError`.
    """
    try:
        local_files.check_platform()
    except LocalFilesError as error:
        raise InstallError(str(error)) from None
    cli = pulumi or shutil.which("pulumi", path=environ.get("PATH"))
    target = place(environ)
    try:
        with tempfile.TemporaryDirectory(prefix="hosting-plugin-") as folder:
            write_launcher(Path(folder))
            if cli is None:
                target.mkdir(parents=True, exist_ok=True)
                write_launcher(target)
            else:
                _ask(cli, folder, environ)
    except OSError as error:
        raise _unusable(error, target) from None
    return target


def uninstall(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Remove this version's plugin, and tell where it was; None if there was none. Raises
    :class:`InstallError`."""
    target = place(environ)
    try:
        shutil.rmtree(target)
        target.with_name(target.name + ".lock").unlink(missing_ok=True)  # the CLI's own, beside it
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(error, target) from None
    return target


def _unusable(error: OSError, target: Path) -> InstallError:
    return InstallError(
        f"{error.filename or target}: {error.strerror}. Next: correct the path, or set PULUMI_HOME to a "
        "directory of your own"
    )


def write_launcher(directory: Path) -> None:
    # -P: the engine starts plugins in the program's directory, and nothing there may stand in for a module of
    # ours.
    command = f"exec {shlex.quote(sys.executable)} -P -m pulumi_hosting.provider.plugin"
    launcher = directory / EXECUTABLE
    launcher.write_text(f'#!/bin/sh\n{command} "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)


def _ask(cli: str, folder: str, environ: Mapping[str, str]) -> None:
    command = [cli, "plugin", "install", "resource", "hosting", version(), "--file", folder, "--reinstall"]
    quiet = {"PULUMI_SKIP_UPDATE_CHECK": "true"}
    done = subprocess.run(
        command,
        env={**environ, **quiet},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise InstallError(
            f"{cli} refused the plugin: {reason}. Next: run `{shlex.join(command[:-3])}` by hand to see more"
        )
