"""URNs (`urn:pulumi:<stack>::<project>::<parent types$type>::<name>`), types and provider references
(`<urn>::<id>`).
"""

STACK_TYPE = "pulumi:pulumi:Stack"
PROVIDER_PREFIX = "pulumi:providers:"


def make_urn(stack: str, project: str, parent: str, type: str, name: str) -> str:
    parent_type = qualified_type(parent) if parent else ""
    prefix = f"{parent_type}$" if parent_type and parent_type != STACK_TYPE else ""
    return f"urn:pulumi:{stack}::{project}::{prefix}{type}::{name}"


def qualified_type(urn: str) -> str:
    return urn.split("::", 3)[2] if urn.count("::") >= 3 else ""


def urn_type(urn: str) -> str:
    return qualified_type(urn).rsplit("$", 1)[-1]


def urn_name(urn: str) -> str:
    return urn.split("::", 3)[-1]


def is_provider(type: str) -> bool:
    return type.startswith(PROVIDER_PREFIX)


def package_of(type: str) -> str:
    """The package a type belongs to: `toy` of `toy:index:Thing`, and of `pulumi:providers:toy`."""
    return type.removeprefix(PROVIDER_PREFIX) if is_provider(type) else type.split(":", 1)[0]


def provider_urn(reference: str) -> str:
    return reference.rpartition("::")[0]


def provider_id(reference: str) -> str:
    return reference.rpartition("::")[2]


def provider_reference(urn: str, id: str) -> str:
    return f"{urn}::{id}"
