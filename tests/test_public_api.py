"""The public Python API is what tests/public_api.txt lists."""

from tests import public_api


def test_a_change_of_the_public_api_is_a_visible_diff() -> None:
    listed = public_api.LIST.read_text(encoding="utf-8").splitlines()
    found = public_api.text().splitlines()
    changed = [f"- {line}" for line in listed if line not in found] + [
        f"+ {line}" for line in found if line not in listed
    ]
    assert changed == [], (
        "the public API changed: run `python -m tests.public_api`, and name the change in the changelog"
    )
    assert listed == found
