"""``python -m pulumi_hosting.emulator``."""

import sys
from importlib.util import find_spec

if __name__ == "__main__":
    if any(find_spec(module) is None for module in ("click", "starlette", "uvicorn")):
        sys.exit("pulumi-hosting: the emulator is an extra. Next: pip install 'pulumi-hosting[emulator]'")

    from pulumi_hosting.emulator.cli import emulator

    emulator(prog_name="pulumi-hosting emulator")
