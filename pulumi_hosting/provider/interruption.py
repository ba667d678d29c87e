"""What a program prints when Pulumi ends it after an error: nothing, since Pulumi prints that error, and
Python's traceback of an interrupt hides it. Only if the plugin is missing, the command that installs it,
which Pulumi cannot name.
"""

import os
import shutil
import sys
from functools import cache
from types import TracebackType

PROGRAM_OF_PULUMI = "pulumi-language-python-exec"
NATIVE = "pulumi_hosting.native"


@cache
def explain_interrupts() -> None:
    """From now on, if it is Pulumi that runs the program: one that belongs to a user's own process
    (Pulumi's Automation API) ends as the user wants.
    """
    if not any(PROGRAM_OF_PULUMI in argument for argument in sys.orig_argv):
        return
    otherwise = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            otherwise(kind, error, trace)
        elif NATIVE in sys.modules and (version := _missing_plugin()):
            print(
                "Pulumi ended the program; its own error says why. Next: if it found no resource plugin "
                f"'pulumi-resource-hosting' at version v{version}, run `pulumi-hosting plugin install`",
                file=sys.stderr,
            )

    sys.excepthook = shown


def _missing_plugin() -> str | None:
    """The version of the plugin, if it is not where Pulumi looks for it first."""
    from pulumi_hosting.provider.plugin import install  # few programs end so

    on_path = None if os.environ.get("PULUMI_IGNORE_AMBIENT_PLUGINS") else shutil.which(install.EXECUTABLE)
    return None if on_path or (install.place() / install.EXECUTABLE).exists() else install.version()
