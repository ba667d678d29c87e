# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tasks of a module use is loaded once, by Ansible's own process: its worker processes inherit it.
What they do not use is not loaded."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .controller_action import ControllerAction

LATE = (
    "filelock",
    "pulumi_hosting.client.rate_limit.limiter",
    "pulumi_hosting.client.rate_limit.state_file",
    "pulumi_hosting.session.snapshot_text",
)
"""What each task needs, and what loads itself only when it is used."""


def preloaded(name: str) -> type[ControllerAction]:
    """The action plugin of a module, once what its tasks use is loaded. Without ``pulumi_hosting`` they
    report what is missing."""
    with _quickly():
        from ..module_utils import failures, shared_options
        from .controller_action import ControllerAction, module_named

        if failures.unusable() is not None:
            return ControllerAction
        import httpx

        from pulumi_hosting.api.models import Me
        from pulumi_hosting.client.httpx_connection import tls_context
        from pulumi_hosting.client.requests import NoFields

        for part in LATE:
            import_module(part)
        shared_options.api_key_of_environment()  # HOSTING_API_KEY_COMMAND runs once, not in each worker
        httpx.Client(verify=tls_context(None)).close()
        models: list[type[BaseModel]] = [NoFields, Me, *module_named(name).load()]
        for model in models:
            model.model_rebuild()
        return ControllerAction


def _quickly() -> AbstractContextManager[None]:
    try:
        from pulumi_hosting.provider.quick_imports import quick_imports
    except ImportError:
        return nullcontext()
    return quick_imports()
