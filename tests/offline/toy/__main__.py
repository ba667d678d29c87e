"""A Pulumi program that declares what `program.json` in the toy service's folder says."""

import json
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import settings

wanted = json.loads((Path(os.environ["TOY_SERVICE"]) / "program.json").read_text())
declared_names = {resource["name"] for resource in wanted["resources"]}
made: dict[str, Any] = {}


order: list[str] = wanted["order"]
sent = {name: threading.Event() for name in order}


def in_order(call: Any) -> Callable[[Any], Any]:
    """Send registrations in the recorded order; a Python program sends independent ones in any order."""

    def send(request: Any) -> Any:
        if request.name in declared_names:
            for name in order[: order.index(request.name)] if request.name in sent else order:
                sent[name].wait(300)
        future = call.future(request)
        if request.name in sent:
            time.sleep(0.02)  # let it arrive before the next one
            sent[request.name].set()
        return future.result()

    return send


def value(declared: Any) -> Any:
    """A declared value: `${a.id}` is an output of another resource, `{"secret": v}` a secret."""
    if isinstance(declared, dict) and set(declared) == {"secret"}:
        return pulumi.Output.secret(declared["secret"])
    match = re.fullmatch(r"\$\{(\w+)\.(\w+)\}", declared) if isinstance(declared, str) else None
    return getattr(made[match[1]], match[2]) if match else declared


def options(declared: dict[str, Any]) -> pulumi.ResourceOptions:
    given = dict(declared)
    for key in ("deleted_with", "parent", "provider"):
        if key in given:
            given[key] = made[given[key]]
    if "depends_on" in given:
        given["depends_on"] = [made[name] for name in given["depends_on"]]
    if "aliases" in given:
        given["aliases"] = [
            pulumi.Alias(type_=alias.removeprefix("type:"))
            if alias.startswith("type:")
            else pulumi.Alias(name=alias)
            for alias in given["aliases"]
        ]
    if "timeout" in given:
        given["custom_timeouts"] = pulumi.CustomTimeouts(create=given.pop("timeout"))
    return pulumi.ResourceOptions(**given)


def declare(resource: dict[str, Any]) -> Any:
    properties = {key: value(declared) for key, declared in resource["props"].items()}
    opts = options(resource.get("opts", {}))
    if wanted["form"] == "dynamic":
        from toykit.dyn import Thing

        return Thing(resource["name"], properties, opts)
    from toykit import native

    kind = native.Toy if resource.get("kind") == "provider" else native.Thing
    return kind(resource["name"], properties, opts)


monitor: Any = settings.get_monitor()
for method in ("RegisterResource", "ReadResource"):
    setattr(monitor, method, in_order(getattr(monitor, method)))
for resource in wanted["resources"]:
    made[resource["name"]] = declare(resource)
for name, declared in wanted["outputs"].items():
    pulumi.export(name, value(declared))
