"""``pulumi-resource-hosting``, and ``python -m pulumi_hosting.provider.plugin``, the process that the
launcher starts.
"""

import os
import sys

from pulumi_hosting.installation import install_extras
from pulumi_hosting.provider.quick_imports import quick_imports


def main() -> None:
    """Serve the plugin; one line if the extra that it needs is not installed."""
    # Plugins of pydantic are for a user's models; looking for them takes a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        with quick_imports():
            from pulumi_hosting.provider.plugin import servicer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pulumi", "grpc", "google"):
            raise
        sys.exit(f"pulumi-resource-hosting: the plugin is an extra. Next: {install_extras('pulumi')}")
    servicer.main()


if __name__ == "__main__":
    main()
