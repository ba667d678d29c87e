# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tasks of a module use is loaded once, by Ansible's own process: its worker processes inherit it.
What they do not use is not loaded."""

from __future__ import annotations

from importlib import import_module

from ansible_collections.hosting.cloud.plugins.module_utils.failures import unusable
from ansible_collections.hosting.cloud.plugins.module_utils.module import HostingModule

COMMON = (
    "filelock",
    "pulumi_hosting.client.client",
    "pulumi_hosting.client.deadlines",
    "pulumi_hosting.client.rate_limit.limiter",
    "pulumi_hosting.client.rate_limit.state_file",
    "pulumi_hosting.planning.budget",
    "pulumi_hosting.session.key_owner",
    "pulumi_hosting.session.snapshot_text",
)
"""What each task of the collection uses, but for what these load."""


def module_named(name: str) -> HostingModule:
    """The module of the collection with this name."""
    found: HostingModule = import_module(f"ansible_collections.hosting.cloud.plugins.modules.{name}").MODULE
    return found


def preload(name: str) -> None:
    """Load what the tasks of a module use. Without ``pulumi_hosting`` the tasks report what is missing."""
    module = module_named(name)
    try:
        from pulumi_hosting.provider.quick_imports import quick_imports
    except ImportError:
        return
    with quick_imports():
        if unusable() is not None:
            return
        import httpx
        from pydantic import BaseModel

        from pulumi_hosting.client.transport import tls_context

        for part in COMMON:
            import_module(part)
        httpx.Client(verify=tls_context(None)).close()
        from pulumi_hosting.api.models import Me
        from pulumi_hosting.client.requests import NoFields

        models: list[type[BaseModel]] = [NoFields, Me, *module.load()]
        for model in models:
            model.model_rebuild()
