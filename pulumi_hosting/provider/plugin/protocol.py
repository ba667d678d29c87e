"""The messages of Pulumi's protocol: the modules of ``pulumi.runtime.proto``, without the SDK around them.

An engine starts a plugin for each command, and a third of the start would be the import of ``pulumi``.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.runtime.proto import engine_pb2 as engine_pb2
    from pulumi.runtime.proto import engine_pb2_grpc as engine_pb2_grpc
    from pulumi.runtime.proto import plugin_pb2 as plugin_pb2
    from pulumi.runtime.proto import provider_pb2 as provider_pb2
    from pulumi.runtime.proto import provider_pb2_grpc as provider_pb2_grpc
    from pulumi.runtime.proto import status_pb2 as status_pb2

_sdk = find_spec("pulumi")
if _sdk is None or _sdk.origin is None:
    raise ModuleNotFoundError("No module named 'pulumi'", name="pulumi")
__path__ = [str(Path(_sdk.origin).with_name("runtime") / "proto")]
"""Its modules are those of the SDK; protobuf has each message's class once, whoever imports it."""
