"""`pulumi-hosting offline import`."""

import click

from pulumi_hosting.cli.offline.common_options import skip_preview_option, with_stack, yes_option
from pulumi_hosting.offline import OfflineStack


@click.command(name="import")
@with_stack
@click.argument("type")
@click.argument("resource")
@click.argument("id")
@click.option(
    "--protect", type=bool, default=True, show_default=True, help="Protect the resource from deletion."
)
@click.option(
    "--generate-code", type=bool, default=False, help="Accepted for compatibility: no code is written."
)
@yes_option
@skip_preview_option
def import_resource(
    stack: OfflineStack, type: str, resource: str, id: str, protect: bool, skip_preview: bool, **_: object
) -> None:
    """Take the existing object ID under management, as RESOURCE of TYPE. Then declare it in the program.

    Example: pulumi-hosting offline import hosting:index:Server web 20001
    """
    result = stack.import_resource(type, resource, id, protect=protect, preview=not skip_preview)
    click.get_current_context().exit(result.exit_code)
