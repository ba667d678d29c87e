"""`pulumi-hosting offline`: Pulumi's commands, options and exit codes on the offline engine."""

import click

from pulumi_hosting.cli.lazy import Command, LazyGroup

_HERE = "pulumi_hosting.cli.offline"
COMMANDS = {
    "up": Command(f"{_HERE}.operations", "up", "Create, update and delete resources to match the program."),
    "preview": Command(f"{_HERE}.operations", "preview", "Show what `up` would do."),
    "refresh": Command(f"{_HERE}.operations", "refresh", "Update the state from the real resources."),
    "destroy": Command(f"{_HERE}.operations", "destroy", "Delete every resource of the stack."),
    "import": Command(
        f"{_HERE}.import_resource", "import_resource", "Take an existing object under management."
    ),
    "cancel": Command(f"{_HERE}.cancel", "cancel", "Remove the lock that a killed operation left behind."),
    "stack": Command(f"{_HERE}.stack", "stack", "Create, select, list, export and remove stacks."),
    "state": Command(f"{_HERE}.state", "state", "Edit a stack's state."),
    "config": Command(f"{_HERE}.config", "config", "Read and set a stack's configuration."),
}


class OfflineGroup(LazyGroup):
    """Prints an error of the engine as one line and exits with the code that Pulumi would use."""

    def invoke(self, ctx: click.Context) -> object:
        from pulumi_hosting.offline import OfflineError  # loads the engine: not before a command runs

        try:
            return super().invoke(ctx)
        except OfflineError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=OfflineGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def offline() -> None:
    """Run a Pulumi program without Pulumi's CLI, for trying and testing.

    Commands, options and exit codes are those of `pulumi`; docs/pulumi.md lists the differences.

    State is saved in PULUMI_BACKEND_URL (file://DIR), else in .pulumi-offline beside Pulumi.yaml; secrets are
    encrypted with PULUMI_CONFIG_PASSPHRASE. Use `pulumi` for real stacks.

    Example: pulumi-hosting offline up --cwd shop --stack dev
    """
