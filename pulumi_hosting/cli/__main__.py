"""``python -m pulumi_hosting.cli``: the same as ``pulumi-hosting``."""

from pulumi_hosting.cli import main

if __name__ == "__main__":
    main(prog_name="pulumi-hosting")
