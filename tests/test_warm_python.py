"""The Python of rehearsals and tests that has imported everything."""

import subprocess
import sys

import pytest

EXTRAS = ("prometheus_client", "redis", "rich")


@pytest.mark.parametrize("missing", EXTRAS)
def test_it_starts_without_an_extra(missing: str) -> None:
    """As the README installs the package: a rehearsal needs none of them."""
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from pulumi_hosting.rehearsal import warm_python\n"
        "warm_python._preload()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
