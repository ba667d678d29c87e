"""What playbooks rely on: modules, plugins, their options with types and choices, and their return values.
``interface.txt`` holds it.

``python -m tests.ansible.test_interface`` writes that file. Within a major version lines are only added.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.hosting.cloud.plugins.callback import drift
from ansible_collections.hosting.cloud.plugins.inventory import servers
from tests.ansible.test_specs import MODULES, module

LIST = Path(__file__).with_name("interface.txt")


def interface() -> Iterator[str]:
    for name in MODULES:
        made = module(name)
        for option, spec in made.MODULE.argument_spec.items():
            yield f"{name} option {option}: {_kind(spec)}"
        yield from _returned(f"{name} returns ", yaml.safe_load(made.RETURN))
    for name, plugin in (("servers", servers), ("drift", drift)):
        for option, spec in yaml.safe_load(plugin.DOCUMENTATION)["options"].items():
            yield f"{name} option {option}: {_kind(spec)}"


def _kind(spec: Mapping[str, Any]) -> str:
    """Its type, and the values that it may have."""
    required = ", required" if spec.get("required") else ""
    elements = f" of {spec['elements']}" if "elements" in spec else ""
    choices = "".join(f" | {choice}" for choice in sorted(map(str, spec.get("choices") or ())))
    return f"{spec['type']}{elements}{required}{choices}"


def _returned(before: str, values: Mapping[str, Any] | None) -> Iterator[str]:
    for name, spec in (values or {}).items():
        yield f"{before}{name}: {_kind(spec)}"
        yield from _returned(f"{before}{name}.", spec.get("contains"))


def test_the_interface_is_the_recorded_one() -> None:
    assert sorted(interface()) == LIST.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    LIST.write_text("\n".join(sorted(interface())) + "\n", encoding="utf-8")
