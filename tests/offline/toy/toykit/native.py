"""The toy service's native resources, as a generated SDK would declare them."""

from typing import Any

import pulumi


class Thing(pulumi.CustomResource):
    def __init__(self, name: str, props: dict[str, Any], opts: Any = None) -> None:
        super().__init__(
            "toy:index:Thing",
            name,
            {"size": None, "note": None, **props, "status": None, "secretOut": None},
            opts,
        )


class Toy(pulumi.ProviderResource):
    def __init__(self, name: str, props: dict[str, Any], opts: Any = None) -> None:
        super().__init__("toy", name, props, opts)
