"""Import: the core beside the libraries it stands on."""

import subprocess
import sys
from collections.abc import Callable, Iterator

from tests.benchmarks.measure import Ratio, compare


def ratios() -> Iterator[Ratio]:
    yield compare("import pulumi_hosting", _import("pulumi_hosting"), "a bare Python", _import("sys"))
    yield compare(
        "import the client", _import("pulumi_hosting.client.client"), "import httpx", _import("httpx")
    )
    yield compare(
        "import the client",
        _import("pulumi_hosting.client.client"),
        "import httpx, pydantic",
        _import("httpx, pydantic.main"),
    )


def _import(names: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", f"import {names}"], check=True)
