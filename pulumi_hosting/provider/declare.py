"""What every class of form one has in common."""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from pulumi_hosting.provider.dynamic import _Provider
from pulumi_hosting.provider.values import IDENTITY, camel, snake
from pulumi_hosting.resources import NOUNS
from pulumi_hosting.resources.base import Noun


class _HostingResource(Resource):
    """Common to all: names in both spellings, the identity, the secret outputs."""

    def __init__(
        self, provider: _Provider, resource_name: str, inputs: Mapping[str, Any], wait_timeout: Any, opts: pulumi.ResourceOptions | None
    ) -> None:
        noun = NOUNS[provider.kind]
        outputs: dict[str, Any] = {name: None for name in noun.State.model_fields if name != "id"}
        props = {**outputs, **{name: value for name, value in inputs.items() if value is not None}}
        props[IDENTITY] = _identity(noun, resource_name, opts)
        if wait_timeout is not None:
            props["wait_timeout"] = wait_timeout
        secret = sorted(noun.State.secret_fields() | noun.Inputs.secret_fields())
        merged = pulumi.ResourceOptions.merge(pulumi.ResourceOptions(additional_secret_outputs=secret), opts)
        super().__init__(provider, resource_name, props, merged)

    def translate_input_property(self, prop: str) -> str:
        return camel(prop)

    def translate_output_property(self, prop: str) -> str:
        return snake(prop)


def _identity(noun: Noun[Any, Any], resource_name: str, opts: pulumi.ResourceOptions | None) -> str:
    """What names the declaration: project, stack, type, the name, and the parent's name where it has one."""
    parent = opts.parent if opts else None
    family = f"{parent.pulumi_resource_type}:{parent.pulumi_resource_name}/" if parent is not None else ""
    return f"pulumi:{pulumi.get_project()}/{pulumi.get_stack()}/{noun.kind}/{family}{resource_name}"
