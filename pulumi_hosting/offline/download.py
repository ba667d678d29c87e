"""Pulumi's own CLI, downloaded by Pulumi's own SDK: for those who want the real engine beside the offline one."""

from pulumi.automation import PulumiCommand


class NotDownloaded(Exception):
    """The CLI could not be had; ``str()`` is one line."""


def download_cli() -> str:
    """The path of a ``pulumi`` of the SDK's version, downloaded to where Pulumi keeps it. Needs the internet."""
    try:
        return PulumiCommand.install().command
    except Exception as error:  # noqa: BLE001  # whatever the download meets, the person reads one line
        raise NotDownloaded(f"Pulumi's CLI could not be downloaded ({type(error).__name__})") from None
