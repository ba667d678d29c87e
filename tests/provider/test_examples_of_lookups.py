"""The example in Python of every lookup runs and finds something, on an emulator."""

import pytest

from generate import lookup_examples
from pulumi_hosting.schema.lookups import LOOKUPS
from tests.contract.harness import ApiHarness
from tests.provider.test_invoke import account
from tests.provider.test_lookups import prepared

__all__ = ["account"]  # a fixture


@pytest.mark.parametrize("name", LOOKUPS)
def test_the_example_runs(name: str, account: ApiHarness) -> None:
    given = prepared(account, name)
    wanted = [field for field in LOOKUPS[name].arguments if field.required]
    ids = {field.name: given[field.wire] for field in wanted}
    values = {key: id if isinstance(id, str) else int(id) for key, id in ids.items()}
    if "server_id" in values:
        values["server_id"] = str(values["server_id"])
    space: dict[str, object] = {}
    exec(lookup_examples.python(LOOKUPS[name], values), space)  # noqa: S102  # the example is the program
    assert space["found"]
