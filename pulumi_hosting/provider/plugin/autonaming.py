"""``pulumi:autonaming`` of the stack's configuration: the name of a resource whose program gives none.

After a crash the purchase is found by the identity of its resource, and the order is sent again as it was. So
the name must follow from the identity, too. The engine makes new random parts of a pattern in each run, and
does not say which parts those are: a proposed name is taken only if it is made of nothing else than the
identity is made of.
"""

from collections.abc import Collection

from pulumi_hosting.provider.plugin.protocol import provider_pb2 as rpc

_MAY_BE_RANDOM = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
"""What ``${hex(n)}``, ``${alphanum(n)}``, ``${string(n)}``, ``${num(n)}`` and ``${uuid}`` are made of, beside
hyphens."""
_NEXT = "pulumi config set --path pulumi:autonaming.providers.hosting.pattern '${name}-${stack}'"


def chosen_name(options: rpc.CheckRequest.AutonamingOptions, parts: Collection[str]) -> str:
    """``options``: as the engine sends them; ``parts``: what the identity is made of. Raises ``ValueError``
    with the reason of a refusal."""
    if options.mode == options.DISABLE:
        raise ValueError("is required, since pulumi:autonaming is disabled. Next: give a name")
    name, reached = options.proposed_name, {0}
    for at in range(len(name)):
        if at in reached:
            reached |= {at + len(part) for part in parts if name.startswith(part, at)}
            reached |= set() if name[at] in _MAY_BE_RANDOM else {at + 1}
    if len(name) not in reached:
        raise ValueError(
            f"pulumi:autonaming proposes {name!r}, and a part of it may be random, so that a run after a "
            "crash would order again; only name, project, stack, organization and hosting:scope may be "
            f"in it. Next: {_NEXT}, or give a name"
        )
    return name
