"""``python -m pulumi_hosting.provider.plugin``: the process that the launcher starts."""

import os

from pulumi_hosting.provider.quick_imports import quick_imports

if __name__ == "__main__":
    # Plugins of pydantic are for a user's models; looking for them takes a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with quick_imports():
        from pulumi_hosting.provider.plugin.servicer import main
    main()
