"""The work of `pulumi-hosting validate`."""

from dataclasses import asdict
from pathlib import Path

from pulumi_hosting.cli.output import key_values
from pulumi_hosting.reports import validate
from pulumi_hosting.reports.report import FOUND, Report


def run(directory: Path, config: tuple[str, ...], stack: str | None) -> Report:
    found = validate.validate(directory, key_values(config), stack)
    what = "resource" if found.resources == 1 else "resources"
    checked = "checked, no mistakes" if found.is_run else "read, none goes with a server that stays"
    return Report(
        {"resources": found.resources, "mistakes": [asdict(mistake) for mistake in found.mistakes]},
        [*map(str, found.mistakes)] or [f"{found.resources} {what} {checked}."],
        exit_code=FOUND if found.mistakes else 0,
    )
