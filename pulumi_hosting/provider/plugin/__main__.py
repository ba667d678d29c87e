"""``python -m pulumi_hosting.provider.plugin``: the process that the launcher starts."""

import gc
import os

if __name__ == "__main__":
    # Plugins of pydantic are for a user's models, and the imports of a start leave no garbage: looking for
    # either takes a fifth of it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()
    from pulumi_hosting.provider.plugin.servicer import main

    gc.freeze()
    gc.enable()
    main()
