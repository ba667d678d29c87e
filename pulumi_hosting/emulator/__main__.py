"""``python -m pulumi_hosting.emulator``."""

import gc
import os
import sys
from importlib import import_module
from importlib.util import find_spec

from pulumi_hosting.installation import install_extras

if __name__ == "__main__":
    if any(find_spec(module) is None for module in ("click", "uvicorn")):
        sys.exit(f"pulumi-hosting: the emulator is an extra. Next: {install_extras('emulator')}")

    # Plugins of pydantic are for a user's models. Looking for them takes a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # imports leave no garbage, and without the collector they are a tenth faster
    from pulumi_hosting.emulator.cli import emulator

    import_module("pulumi_hosting.emulator.asgi")
    gc.enable()
    # What a request leaves is kept as rows; there is next to nothing to find.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    emulator(prog_name="pulumi-hosting emulator")
