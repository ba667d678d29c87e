"""``python -m pulumi_hosting.emulator``."""

from pulumi_hosting.emulator.cli import emulator

if __name__ == "__main__":
    emulator(prog_name="pulumi-hosting emulator")
