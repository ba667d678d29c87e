"""How a method of the plugin fails: one line for the engine, and what exists nevertheless."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import grpc
from google.protobuf import any_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from pulumi_hosting.provider.failures import StepFailed, as_user_error

Servicer = TypeVar("Servicer")


class InitFailed(Exception):
    """Something exists that is not ready yet: the engine saves it, and the next run goes on."""

    def __init__(self, detail: provider_pb2.ErrorResourceInitFailed) -> None:
        super().__init__("; ".join(detail.reasons))
        self.detail = detail

    def status(self) -> bytes:
        """The details that accompany the error."""
        detail = any_pb2.Any()
        detail.Pack(self.detail)
        # Pulumi's own Status: google.rpc's is a second symbol of that name, which ends the process.
        code: int = grpc.StatusCode.UNKNOWN.value[0]
        status: bytes = status_pb2.Status(code=code, message=str(self), details=[detail]).SerializeToString()
        return status


def reports_errors(servicer: type[Servicer]) -> type[Servicer]:
    """Have the errors of its methods end as one line for the engine; grpc would print a traceback."""
    for name in vars(servicer).keys() & vars(provider_pb2_grpc.ResourceProviderServicer).keys():
        if not name.startswith("__"):
            setattr(servicer, name, _reporting(vars(servicer)[name]))
    return servicer


def _reporting(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def reporting(self: object, request: object, context: grpc.ServicerContext) -> object:
        code = grpc.StatusCode.UNKNOWN
        try:
            with as_user_error(InitFailed, NotImplementedError):
                return method(self, request, context)
        except StepFailed as error:
            line = str(error)
        except NotImplementedError as error:
            code, line = grpc.StatusCode.UNIMPLEMENTED, str(error)
        except InitFailed as error:
            line = str(error)
            context.set_trailing_metadata((("grpc-status-details-bin", error.status()),))
        context.abort(code, line)

    return reporting
