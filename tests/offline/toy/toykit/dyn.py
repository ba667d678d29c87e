"""The toy service's dynamic provider."""

from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.output import Unknown

from toykit import service


def shown(properties: dict[str, Any]) -> dict[str, Any]:
    """Properties as they are recorded."""
    return {
        key: "<unknown>" if isinstance(value, Unknown) else value
        for key, value in properties.items()
        if not key.startswith("__")
    }


class ThingProvider(ResourceProvider):
    serialize_as_secret_always = False

    def configure(self, req: ConfigureRequest) -> None:
        service.log("Configure", key=req.config.get("toy:apiKey"))

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        service.log("Check", olds=shown(_olds), news=shown(news))
        return CheckResult(
            news, [CheckFailure("name", "name must not be bad")] if news.get("name") == "bad" else []
        )

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        service.log("Diff", id=_id, olds=shown(_olds), news=shown(_news))
        changed = [key for key in service.INPUTS if _olds.get(key) != _news.get(key)]
        return DiffResult(
            changes=bool(changed),
            replaces=[key for key in changed if key == "size"],
            delete_before_replace=_news.get("note") == "dbr",
        )

    def create(self, props: dict[str, Any]) -> CreateResult:
        service.log("Create", props=shown(props))
        service.fault(f"create:{props['name']}")
        id, thing = service.create(props)
        return CreateResult(id, thing)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        service.log("Read", id=id_, props=shown(props))
        service.fault(f"read:{id_}")
        thing = service.read(id_)
        if thing is None:
            return ReadResult("", {})
        return ReadResult(id_, dict(thing), {key: thing[key] for key in service.INPUTS if key in thing})

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        service.log("Update", id=_id, olds=shown(_olds), news=shown(_news))
        service.fault(f"update:{_id}")
        return UpdateResult(dict(service.update(_id, _news)))

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        service.log("Delete", id=_id, props=shown(_props))
        service.fault(f"delete:{_id}")
        service.delete(_id)


class Thing(Resource, module="toy", name="Thing"):
    def __init__(self, name: str, props: dict[str, Any], opts: Any = None) -> None:
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(additional_secret_outputs=["secretOut"])
        )
        super().__init__(ThingProvider(), name, {**props, "status": None, "secretOut": None}, opts)
