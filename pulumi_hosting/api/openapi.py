"""The API as an OpenAPI 3.1 document, printed from the table of operations and the models (API document,
"Versioning").

Beside the standard parts each operation carries ``x-scopes``, ``x-idempotent``, ``x-expensive``,
``x-expensive-when`` (expensive only when a query parameter has one of these values) and ``x-sandbox``.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.api.operations import KEY_LENGTH, OPERATIONS, SCOPES, Operation
from pulumi_hosting.api.values import INT64

RETRY_AFTER_STATUSES = (409, 429, 503)

_REF = "#/components/schemas/{model}"
_GENERIC = re.compile(r"^(Page|Listing)\[(\w+)\]$")


def document() -> dict[str, Any]:
    """The whole document, made at each call."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hosting Client API",
            "version": "1.0.0",
            "description": "Virtual servers, domains, balance and webhooks of a hosting account.",
        },
        "servers": [{"url": "/v1"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in OPERATIONS)],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "headers": deepcopy(_HEADERS),
            "parameters": deepcopy(_PARAMETERS),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "API key; vk_live_… or vk_test_…. Scopes: "
                    + "; ".join(f"{name}: {what}" for name, what in SCOPES.items()),
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, object]:
    keyed = ["IdempotencyKey"] if operation.is_keyed else []
    printed: dict[str, object] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": [{"bearer": []}] if operation.auth else [],
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": _ID}
                for name in operation.path_parameters
            ),
            *_query_parameters(operation),
            *({"$ref": f"#/components/parameters/{name}"} for name in ["RequestId", *keyed]),
        ],
        "responses": {**_successes(operation), **_refusals(operation)},
        "x-scopes": list(operation.scopes),
        "x-idempotent": operation.is_keyed,
        "x-expensive": operation.expensive,
        "x-sandbox": operation.sandbox,
    }
    if operation.expensive_when:
        printed["x-expensive-when"] = {
            name: list(values) for name, values in operation.expensive_when.items()
        }
    if operation.request is not None:
        printed["requestBody"] = {
            "required": not operation.body_optional,
            "content": _json(operation.request.__name__),
        }
    return printed


def _json(model: str) -> dict[str, object]:
    """A body that is a model of this name."""
    return {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}


# --- parameters

_ID = {"type": "integer", "format": "int64", "minimum": 1, "maximum": INT64}


def _query_parameters(operation: Operation) -> Iterator[dict[str, object]]:
    if operation.query is None:
        return
    schema = operation.query.model_json_schema(mode="validation", schema_generator=_Printer)
    for name, field in schema["properties"].items():
        # A query has no null: an optional parameter is left out instead.
        branches = [branch for branch in field.pop("anyOf", ()) if branch != {"type": "null"}]
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {**field, **branches[0]} if len(branches) == 1 else field,
        }


def _header(kind: str, description: str, required: bool = False, **rules: int) -> dict[str, object]:
    return {"description": description, "required": required, "schema": {"type": kind, **rules}}


_ADOPTED = "Adopted and echoed: the first 64 of its letters, digits and . _ : - characters. Never an error."
_NAMES = (
    "Names this request for 7 days: repeated with the same key it is answered again, not carried out again."
)
_LENGTHS = {"minLength": KEY_LENGTH.start, "maxLength": KEY_LENGTH.stop - 1}
_PARAMETERS = {
    "RequestId": {"name": "X-Request-ID", "in": "header", **_header("string", _ADOPTED)},
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        **_header("string", _NAMES, True, **_LENGTHS),
    },
}


# --- answers


_HEADERS = {
    "X-Request-ID": _header("string", "Id of this request; equals error.request_id.", required=True),
    "X-Sandbox": _header("string", "true in every answer to a test key."),
    "X-RateLimit-Limit": _header("integer", "Requests per window in the bucket this call counted in."),
    "X-RateLimit-Remaining": _header("integer", "Requests left in the current window."),
    "X-RateLimit-Reset": _header("integer", "Unix seconds at which the window ends."),
    "Retry-After": _header("integer", "Seconds to wait before trying again."),
    "Cache-Control": _header("string", "public, max-age=300."),
    "Content-Disposition": _header("string", "attachment with a file name."),
}


def _headers(operation: Operation, *more: str) -> dict[str, object]:
    """The headers that every answer of an operation has, and ``more``."""
    limited = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Sandbox")
    names = ("X-Request-ID", *(limited if operation.auth else ()), *more)
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _successes(operation: Operation) -> dict[str, object]:
    printed: dict[str, object] = {}
    for status, model in operation.responses.items():
        answer: dict[str, Any] = {"description": operation.summary, "headers": _headers(operation)}
        if model is bytes:
            answer["content"] = {"application/pdf": {}}
            answer["headers"] = _headers(operation, "Content-Disposition")
        elif model is dict:
            answer["content"] = {"application/json": {"schema": {"type": "object"}}}
            answer["headers"] = _headers(operation, "Cache-Control")
        elif model is not None:
            answer["content"] = _json(schema_name(model))
        printed[str(status)] = answer
    return printed


def _refusals(operation: Operation) -> dict[str, object]:
    by_status: dict[int, list[str]] = {}
    for code in operation.error_codes:
        by_status.setdefault(CODES[code].status, []).append(code)
    printed: dict[str, object] = {}
    for status, codes in sorted(by_status.items()):
        more = ["Retry-After"] if status in RETRY_AFTER_STATUSES else []
        printed[str(status)] = {
            "description": "; ".join(f"{code}: {CODES[code].meaning}" for code in codes),
            "headers": _headers(operation, *more),
            "content": _json("Error"),
            "x-codes": codes,
        }
    return printed


# --- schemas


def schema_name(model: type[BaseModel]) -> str:
    """The name of a model in ``components.schemas``: ``Page[Server]`` is ``ServerPage``, ``Listing[Zone]`` is
    ``ZoneListing``.
    """
    return _GENERIC.sub(r"\2\1", model.__name__)


class _Printer(GenerateJsonSchema):
    """Prints models under their plain names, without titles made from names and without ``default: null``
    (absent is not null).
    """

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(_GENERIC.sub(r"\2\1", name))

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        printed = super().model_schema(schema)
        del printed["title"]
        return printed

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        is_null = schema.get("default", ...) is None
        return self.generate_inner(schema["schema"]) if is_null else super().default_schema(schema)


def _schemas() -> dict[str, object]:
    models: dict[type[BaseModel], JsonSchemaMode] = {}
    for operation in OPERATIONS:
        if operation.request is not None:
            models[operation.request] = "validation"
        for model in operation.responses.values():
            if model not in (None, bytes, dict):
                models[model] = "serialization"
    _, printed = models_json_schema(list(models.items()), ref_template=_REF, schema_generator=_Printer)
    return {"Error": deepcopy(_ERROR), **printed["$defs"]}


_ERROR: dict[str, object] = {
    "type": "object",
    "description": "The one envelope of every error.",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {
                    "type": "string",
                    "description": "Clients branch on it; codes may be added.",
                    "examples": list(CODES),
                },
                "message": {"type": "string", "description": "English, not stable, not for parsing."},
                "request_id": {"type": "string"},
                "details": {"type": "object", "additionalProperties": True},
            },
        }
    },
}
