"""What the tests of the emulator share."""

import pytest

from tests.support.account import Account


@pytest.fixture
def any_dialect(dialect: str, account: Account) -> Account:
    """The account in the dialect of the document, then in that of a live deployment."""
    return account
