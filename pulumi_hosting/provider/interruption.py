"""What a native program prints when Pulumi ends it after an error: one line on what may be missing, not
Python's traceback of an interrupt, which hides that error.
"""

import sys
from functools import cache
from types import TracebackType

from pulumi_hosting.provider.version import version

PROGRAM_OF_PULUMI = "pulumi-language-python-exec"


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
            return
        print(
            "Pulumi ended the program; its own error says why. Next: if it found no resource plugin "
            f"'pulumi-resource-hosting' at version v{version()}, run `pulumi-hosting plugin install`",
            file=sys.stderr,
        )

    sys.excepthook = shown
