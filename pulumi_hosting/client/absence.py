"""What a 404 proves.

The service answers 404, in its envelope, for an object that is not on the account and for a path that it does
not have. At a wrong base URL, such as that of another version, every object would seem to be gone. So a 404
is believed only by a client that has had an answer to ``GET /me`` at its base URL.
"""

from pulumi_hosting.api import operations
from pulumi_hosting.api.operations import Operation
from pulumi_hosting.client.exceptions import (
    NO_ENVELOPE,
    ApiError,
    HostingError,
    InvalidResponse,
    RedirectRefused,
)

ME = "get_me"
"""The operation whose answer shows whose key it is."""


def depends_on_owner(error: HostingError, operation: Operation) -> bool:
    """Whether it is a 404 that is believed if the owner of the key is known."""
    if not isinstance(error, ApiError) or error.status != 404 or error.code == NO_ENVELOPE:
        return False
    row = operations.BY_ID.get(operation.id)
    # A 404 of an operation that the table does not have may be about an object too.
    return operation.id != ME and (row is None or "not_found" in row.error_codes)


def judged(
    error: ApiError, operation: Operation, base_url: str, *, is_known: bool, reason: HostingError | None
) -> ApiError:
    """The error that a 404 is: ``error`` itself, a ``NotFound``, only if this service is known to be the
    API: if the owner of the key ``is_known``. ``reason``: why asking for the owner failed."""
    is_foreign = error.code == NO_ENVELOPE
    if operation.id == ME or not (is_known or depends_on_owner(error, operation)):
        return _no_api(error, base_url)
    if is_foreign:
        error._remedy = "check the proxies on the way to the base URL, then {again}"
        return error
    if reason is None:
        return error
    if isinstance(reason, InvalidResponse | RedirectRefused) or getattr(reason, "code", "") == NO_ENVELOPE:
        return _no_api(error, base_url)
    why = getattr(reason, "summary", None) or str(reason)
    return _unproven(
        error,
        f"404, which does not prove that the object is gone: the base URL {base_url} may be wrong ({why})",
        getattr(reason, "_remedy", None) or "{again} later",
    )


def _no_api(error: ApiError, base_url: str) -> ApiError:
    return _unproven(
        error,
        f"no API answers at the base URL {base_url}",
        "correct the base URL, which ends in the version segment, such as /v1 ({base_url})",
    )


def _unproven(error: ApiError, text: str, remedy: str) -> ApiError:
    """An error that no caller takes for "the object is gone"."""
    found = ApiError(
        status=error.status,
        code=NO_ENVELOPE,
        message=error.message,
        request_id=error.request_id,
        details=error.details,
        operation=error.operation,
    )
    found.args, found._remedy = (text,), remedy
    return found
