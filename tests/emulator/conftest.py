"""A fresh emulator in the process of the test, in the dialect of the document; ``both`` is one in either dialect."""

import pytest

from tests.emulator.support import Lab


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def both(dialect: str) -> Lab:
    return Lab(dialect=dialect)
