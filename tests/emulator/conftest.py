"""A fresh emulator in process: ``emu`` in the dialect of the document, ``any_dialect`` in both, one after the
other.
"""

import pytest

from tests.emulator.support import EmulatorHarness


@pytest.fixture
def emu() -> EmulatorHarness:
    return EmulatorHarness()


@pytest.fixture
def any_dialect(dialect: str) -> EmulatorHarness:
    return EmulatorHarness(dialect=dialect)
