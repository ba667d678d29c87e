"""Downloads Pulumi's own CLI with Pulumi's SDK."""

from pulumi.automation import PulumiCommand


class NotDownloaded(Exception):
    """The download failed; ``str()`` is one line."""


def download_cli() -> str:
    """The path of a ``pulumi`` of the SDK's version, downloaded to Pulumi's folder. Needs the internet."""
    try:
        return PulumiCommand.install().command
    except Exception as error:  # noqa: BLE001  any failure becomes one line
        raise NotDownloaded(f"Pulumi's CLI could not be downloaded ({type(error).__name__})") from None
