"""The API as an OpenAPI 3.1 document, printed from the table of operations and the models (API document,
"Versioning").

Beside the standard parts each operation carries ``x-scopes``, ``x-idempotent``, ``x-expensive``,
``x-expensive-when`` (expensive only when a query parameter has one of these values) and ``x-sandbox``.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from pulumi_hosting.api.error_codes import CODES
from pulumi_hosting.api.models.field_types import EVENTS
from pulumi_hosting.api.models.webhooks import DELIVERY_HEADERS
from pulumi_hosting.api.operations import GROUPS, KEY_LENGTH, KEY_PATTERN, OPERATIONS, SCOPES, Operation
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
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
            "description": "Virtual servers, domains, balance and webhooks of a hosting account.",
        },
        "servers": [{"url": "/v1"}],
        "tags": [
            {"name": tag, "description": f"{GROUPS.get(tag, GROUPS['meta']).partition(' (')[0]}."}
            for tag in dict.fromkeys(operation.tag for operation in OPERATIONS)
        ]
        + [{"name": "events", "description": "Deliveries to the URL of a webhook subscription."}],
        "paths": paths,
        "webhooks": {event: {"post": _delivery(event, meaning)} for event, meaning in EVENTS.items()},
        "components": {
            "schemas": deepcopy(_schemas()),
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


def _delivery(event: str, meaning: str) -> dict[str, object]:
    """The request that a subscription's URL gets."""
    area = event.partition(".")[0]
    about = {"$ref": _REF.format(model=_OBJECTS[area])} if area in _OBJECTS else {"type": "object"}
    told = {"type": {"const": event}, "data": {"type": "object", "properties": {"object": about}}}
    schema = {"allOf": [{"$ref": _REF.format(model="Event")}, {"type": "object", "properties": told}]}
    return {
        "operationId": f"on_{event.replace('.', '_')}",
        "tags": ["events"],  # not one of operations: generators make one class of each tag
        "summary": meaning.capitalize(),
        "security": [],
        "parameters": [
            {"name": name, "in": "header", **_header("string", text, True, pattern=pattern)}
            for name, (pattern, text) in DELIVERY_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"2XX": {"description": "Received. The body is ignored; answer within 10 seconds."}},
    }


_OBJECTS = {
    "server": "Server",
    "invoice": "Invoice",
    "balance": "Balance",
    "domain": "Domain",
    "key": "ApiKey",
}
"""The models of ``data.object``, by the first word of an event; a ping has one of its own."""


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
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _without_null(field),
            **({"example": operation.query.example[name]} if name in operation.query.example else {}),
        }


def _without_null(field: JsonSchemaValue) -> JsonSchemaValue:
    """An optional value that is left out rather than null."""
    branches = [branch for branch in field.get("anyOf", ()) if branch != {"type": "null"}]
    rest = {name: value for name, value in field.items() if name != "anyOf"}
    return rest | (branches[0] if len(branches) == 1 else {"anyOf": branches} if branches else {})


def _header(kind: str, description: str, required: bool = False, **rules: object) -> dict[str, object]:
    return {"description": description, "required": required, "schema": {"type": kind, **rules}}


_ADOPTED = "Adopted and echoed: the first 64 of its letters, digits and . _ : - characters. Never an error."
_NAMES = (
    "Names this request for 7 days: repeated with the same key it is answered again, not carried out again."
)
_KEY = {"pattern": KEY_PATTERN, "minLength": KEY_LENGTH.start, "maxLength": KEY_LENGTH.stop - 1}
_PARAMETERS = {
    "RequestId": {"name": "X-Request-ID", "in": "header", **_header("string", _ADOPTED)},
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        **_header("string", _NAMES, True, **_KEY),
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
    "Allow": _header("string", "The methods of this path."),
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
            answer["content"] = {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}
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
    # What other methods of a path get has no place but beside the answers of those it has.
    for code in (*operation.error_codes, "method_not_allowed"):
        by_status.setdefault(CODES[code].status, []).append(code)
    printed: dict[str, object] = {}
    for status, codes in sorted(by_status.items()):
        more = ["Retry-After"] if status in RETRY_AFTER_STATUSES else ["Allow"] if status == 405 else []
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

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        # A choice of one is a choice, too; generators of clients write bad code for a constant number.
        printed = super().literal_schema(schema)
        return {**printed, "enum": [printed.pop("const")]} if "const" in printed else printed

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        is_null = schema.get("default", ...) is None
        return self.generate_inner(schema["schema"]) if is_null else super().default_schema(schema)


@cache
def _schemas() -> dict[str, object]:
    models: dict[type[BaseModel], JsonSchemaMode] = {}
    for operation in OPERATIONS:
        if operation.request is not None:
            models[operation.request] = "validation"
        for model in operation.responses.values():
            if model not in (None, bytes, dict):
                models[model] = "serialization"
    _, printed = models_json_schema(list(models.items()), ref_template=_REF, schema_generator=_Printer)
    for operation in OPERATIONS:
        if (request := operation.request) is not None:
            schema = printed["$defs"][request.__name__]
            schema |= {**deepcopy(dict(request.printed)), "examples": [dict(request.example)]}
            for name, field in schema["properties"].items():
                if not request.may_be_null(name):
                    schema["properties"][name] = _without_null(field)
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
