"""Errors of the offline engine. Each prints one line: what is wrong and what to do next.

OfflineError
├── InvalidConfiguration  project, stack, config or passphrase: exit 2
├── StackNotFound         exit 6
├── StackLocked           exit 1
├── UnfinishedCreates     destroy would leave what an interrupted run created: exit 1
├── PluginError           a provider or the program could not be started
├── AlreadyReported       the reason was printed; the operation ends
└── ProviderError         a provider refused
    └── InitError         the object exists, and is not ready
"""

from .model.provider_results import ProviderResult


class OfflineError(Exception):
    """An error that the user reads without a traceback. `exit_code` is the command line's."""

    exit_code = 1


class InvalidConfiguration(OfflineError):
    exit_code = 2


class StackNotFound(OfflineError):
    exit_code = 6


class StackLocked(OfflineError):
    pass


class UnfinishedCreates(OfflineError):
    pass


class PluginError(OfflineError):
    pass


class AlreadyReported(OfflineError):
    pass


class ProviderError(OfflineError):
    """A call of a provider failed. `corrupting`: it is unknown what the provider did."""

    def __init__(self, message: str, *, corrupting: bool = False) -> None:
        super().__init__(message)
        self.corrupting = corrupting


class InitError(ProviderError):
    """The provider created or changed the object, but it is not ready.

    Its state is saved, and the operation fails.
    """

    def __init__(self, reasons: list[str], result: ProviderResult) -> None:
        count = f"{len(reasons)} error{'s' if len(reasons) != 1 else ''} occurred:\n"
        super().__init__(
            count + "\n".join(f"\t* {reason}" for reason in reasons) if reasons else "resource init failed"
        )
        self.reasons = reasons
        self.result = result
