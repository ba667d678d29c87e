"""Rehearsals on the offline engine, beside importing what they stand on. Goal: one server in 6 seconds, 14
resources in 20, on two quiet cores.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.bench_import import LIBRARIES, run
from tests.benchmarks.measure import Ratio, compare

ROUNDS = 3
EXAMPLES = Path(__file__).parents[2] / "examples"
ONE_SERVER = "from pulumi_hosting import Server\nServer('web', tariff_id=1, os='debian-12')\n"


def ratios() -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory(prefix="hosting-bench-") as folder:
        program = Path(folder)
        (program / "Pulumi.yaml").write_text("name: one\nruntime: python\n", encoding="utf-8")
        (program / "__main__.py").write_text(ONE_SERVER, encoding="utf-8")
        for what, directory in (("one server", program), ("the demo", EXAMPLES / "demo" / "program")):
            yield compare(
                f"rehearse {what}",
                partial(_rehearse, directory),
                "importing pulumi, httpx and pydantic",
                run(f"import pulumi.dynamic; {LIBRARIES}"),
                ROUNDS,
            )


def _rehearse(program: Path) -> None:
    command = [sys.executable, "-m", "pulumi_hosting.cli", "rehearse", str(program), "--engine", "offline"]
    subprocess.run(command, check=True, capture_output=True)
