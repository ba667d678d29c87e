# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Ansible and JSON call values: types without a class of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]
"""Values by name, which are only read: the options of a task, the inputs or the state of an object."""
Json = dict[str, Any]
"""A JSON object: the result of a task, an object of the API, the specification of an option."""
