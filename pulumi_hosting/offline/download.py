"""Downloads Pulumi's own CLI with Pulumi's SDK."""

from pulumi.automation import PulumiCommand

from .errors import OfflineError


def download_cli() -> str:
    """The path of a ``pulumi`` of the SDK's version, downloaded to Pulumi's folder. Needs the internet.

    Raises ``OfflineError``, in one line.
    """
    try:
        return PulumiCommand.install().command
    except Exception as error:  # noqa: BLE001  any failure becomes one line
        raise OfflineError(f"Pulumi's CLI could not be downloaded ({type(error).__name__})") from None
