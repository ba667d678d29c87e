"""Play more of the histories that ``test_stateful`` plays a sample of: ``python -m tests.simulation.histories
--examples 1000``.
"""

import argparse

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.test_stateful import HISTORIES, BothFrontends


def main() -> None:
    """Raises what hypothesis found, shortened."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.histories", description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="how many")
    options = parser.parse_args()
    chosen = settings(HISTORIES, max_examples=options.examples, deadline=None)
    run_state_machine_as_test(BothFrontends, settings=chosen)
    print(f"{options.examples} histories: no promise broken")


if __name__ == "__main__":
    main()
