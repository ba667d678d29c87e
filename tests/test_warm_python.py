"""The Python of rehearsals and tests that has imported everything."""

import subprocess
import sys

EXTRAS = ("prometheus_client", "redis", "rich")


def test_it_starts_without_extras() -> None:
    """As the README installs the package: a rehearsal needs none of them."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"
        "from pulumi_hosting.rehearsal import warm_python\n"
        "warm_python._preload()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
