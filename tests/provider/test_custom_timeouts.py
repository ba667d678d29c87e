"""Pulumi's option ``custom_timeouts`` with dynamic resources. The plugin gets it from the engine."""

import pulumi
import pytest

from pulumi_hosting.provider.dynamic import seconds
from tests.provider.fake_engine import Engine, class_of, declared


@pytest.mark.parametrize(
    ("text", "found"),
    [("90s", 90), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), ("2m", 120), ("5us", 5e-6), ("7ns", 7e-9)],
)
def test_durations_are_read_as_pulumi_writes_them(text: str, found: float) -> None:
    assert seconds(text) == pytest.approx(found)


@pytest.mark.parametrize("text", ["", "90", "s", "1 h", "1h x", "-5s"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no duration\. Next: write it like 90s"):
        seconds(text)


def test_a_dynamic_resource_carries_its_timeouts(pretended: Engine, kind: str) -> None:
    opts = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="90s", delete="1m"))
    pretended.run(lambda: class_of("dynamic", kind)("main", **declared(kind), opts=opts))
    pretended.run(lambda: class_of("dynamic", kind)("other", **declared(kind)))
    first, second = (made.inputs for made in pretended.recorded.made)
    assert first["__timeouts"] == {"create": 90, "delete": 60}
    assert "__timeouts" not in second


def test_a_timeout_that_cannot_be_read_is_refused(pretended: Engine) -> None:
    opts = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="ten minutes"))
    with pytest.raises(TypeError, match=r"SshKey\('key'\): custom_timeouts: 'ten minutes' is no duration"):
        class_of("dynamic", "ssh_key")("key", public_key="x", opts=opts)
