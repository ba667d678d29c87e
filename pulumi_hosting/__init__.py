"""Infrastructure as code for hosts that implement the Hosting Client API v1.

    from pulumi_hosting import Client

    with Client() as client:        # HOSTING_API_KEY, HOSTING_BASE_URL
        print(client.me().scopes)

Importing this package loads nothing else: a name is loaded when it is first used. ``__init__.pyi`` lists the
names for type checkers.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # expensive to import, rarely used

        return version("pulumi-hosting")
    from pulumi_hosting.provider.sdk.exports import PACKAGE

    return load(name, __name__, PACKAGE, globals())


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})


def load(name: str, package: str, homes: Mapping[str, str], loaded: dict[str, Any]) -> Any:
    """A public name of ``package``, from the module in ``homes`` that defines it, or which it is. Kept in
    ``loaded``.

    Raises ``ImportError`` if Pulumi's SDK is needed and not installed, ``AttributeError`` for other names.
    """
    if name == "__all__":
        return list(homes)
    if name not in homes:
        from difflib import get_close_matches  # nothing else needs it

        meant = "".join(f" (did you mean {found}?)" for found in get_close_matches(name, homes, 1))
        raise AttributeError(f"module {package!r} has no attribute {name!r}{meant}")
    try:
        module = import_module(homes[name])
        loaded[name] = module if homes[name].endswith(f".{name}") else getattr(module, name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pulumi":
            raise
        from pulumi_hosting.installation import install_extras  # rarely used

        raise ImportError(f"{name} needs Pulumi's SDK. Next: {install_extras('pulumi')}") from None
    return loaded[name]
