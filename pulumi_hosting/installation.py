"""Where this package came from, for messages that say what else to install.

It is on no package index, and another user may register its name there. No message installs it by name
alone.
"""

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

PACKAGE = "pulumi-hosting"
NEWER_VERSION = f"install a newer version of {PACKAGE}, as its README says under Install"
"""The step that brings a newer version."""
INSTALL_COLLECTION = "ansible-galaxy collection install ./ansible_collections/hosting/cloud"
"""The command that installs the collection, in a clone of the repository."""


def pipeline_files() -> Path:
    """The folder of the pipelines: what the wheel has beside the package, or that of a clone."""
    installed = Path(__file__).parents[1] / "pulumi_hosting_gitops"
    return installed if installed.is_dir() else installed.parent / "examples" / "gitops"


def install_extras(*extras: str) -> str:
    """The step that adds ``extras`` to this installation: the command that installed it, with them. Where
    that is not known, the command in a clone of the repository.
    """
    names = ",".join(extras)
    return f"install the extra {names} of {PACKAGE}: {_command(f'[{names}]')}"


def repository() -> str | None:
    """The https address of the git repository that it was installed from; None if it was not."""
    origin = _origin()
    url = str(origin.get("url", ""))
    return url if "vcs_info" in origin and url.startswith("https://") and "@" not in url else None


def _command(extras: str) -> str:
    origin = _origin()
    url = urlsplit(str(origin.get("url", "")))
    if url.scheme == "file":
        place = url2pathname(url.path)
        option = "-e " if origin.get("dir_info", {}).get("editable") else ""
        if Path(place).exists():
            return f"pip install {option}'{place}{extras}'"
    elif "vcs_info" in origin:
        return f"pip install '{PACKAGE}{extras} @ {origin['vcs_info']['vcs']}+{origin['url']}'"
    return f"pip install '.{extras}' in a clone of it"


def _origin() -> dict[str, Any]:
    """What the installer recorded (PEP 610); empty where it recorded nothing."""
    try:
        found = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
