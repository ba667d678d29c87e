# Copyright: the pulumi-hosting authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The servers of an account, read from the API for the inventory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleParserError

from ..module_utils.json_types import Json, Values

if TYPE_CHECKING:
    from pulumi_hosting.session.request import Request

Server = Json
"""The fields that the module ``server_info`` returns for a server, ``location`` and ``hostname``, and
``addresses`` if they were read."""

PLUGIN = "hosting.cloud.servers"
GONE = ("cancelled", "terminated")


@dataclass(frozen=True)
class Source:
    """Where an inventory reads.

    - ``options``: of the client, such as its key.
    - ``strict``: raise for a server that cannot be read; else leave it out, or its addresses, with a warning
      on ``display``.
    """

    options: Values
    strict: bool
    display: Any

    def servers(self, filters: Mapping[str, str]) -> list[Server]:
        """The servers that match ``filters`` (parameters of the API's ``list_servers``).

        Raises ``AnsibleParserError``: one line with the problem and the next step.
        """
        with self._request() as request:
            from pulumi_hosting.planning.apply import shown
            from pulumi_hosting.resources.server_fields import from_api
            from pulumi_hosting.resources.server_powers import SERVER

            # By id: a server that moves to the next page while the pages are read comes twice.
            found = {
                one.id: {**shown(SERVER, from_api(one)), "location": one.location, "hostname": one.hostname}
                for one in SERVER.listed(request, **filters)
            }
            return list(found.values())

    def addresses(self, servers: Iterable[Server]) -> list[list[Json] | None]:
        """The addresses of each server, one request each; None for one whose list the service cannot give.
        Raises ``AnsibleParserError``."""
        in_a_row: list[Exception] = []
        with self._request() as request:
            return [_addresses(request, server, self, in_a_row) for server in servers]

    @contextmanager
    def _request(self) -> Iterator[Request]:
        from ..module_utils.failures import unusable, words

        if refusal := unusable():
            raise AnsibleParserError(refusal["msg"])

        from pulumi_hosting.client import client, exceptions
        from pulumi_hosting.session.request import Request
        from pulumi_hosting.session.session import Session

        try:
            with client.Client(**self.options, user_agent=f"ansible {PLUGIN}", read_only=True) as asked:
                # Not with the inventory that ansible-inventory prints.
                asked.words = words()
                asked.rate_limiter.on_wait = partial(self.display.display, stderr=True)
                warn = self.display.warning
                request = Request(Session(asked), identity=f"ansible:inventory/{PLUGIN}", warn=warn)
                if not self.strict:
                    request.skip_damaged = lambda error: warn(f"one server is left out: {error}")
                yield request
        except exceptions.InvalidInput as error:
            fields = "; ".join(f"{name}: {reason}" for name, reason in error.fields.items())
            raise AnsibleParserError(f"api_filters: {fields}. Next: correct it") from None
        except exceptions.HostingError as error:
            raise AnsibleParserError(str(error)) from None


def _addresses(
    request: Request, server: Server, source: Source, in_a_row: list[Exception]
) -> list[Json] | None:
    """Every address of a server, with its reverse DNS name; None if the service cannot give them now.
    ``in_a_row``: the failures since the last list."""
    from pulumi_hosting.client.exceptions import InvalidResponse, ServiceState, Unavailable
    from pulumi_hosting.exactly_once import address_list
    from pulumi_hosting.session.text import as_text

    passing = () if source.strict else (InvalidResponse, Unavailable)
    if server["status"] in GONE:
        return []
    try:
        if len(in_a_row) > 2:  # each took seconds of retries: the other servers are not asked
            raise in_a_row[-1]
        found = address_list.of_server(request, server["id"]) or []
        in_a_row.clear()
    except ServiceState as error:  # a server without a record in the panel has no addresses
        source.display.v(f"{server['name']}: no addresses. {error}")
        return []
    except passing as error:
        in_a_row.append(error)
        source.display.warning(f"the addresses of server {server['name']!r} are not known: {error}")
        return None
    return [
        {
            "id": f"{server['id']}/{ip.id}",
            "address": address_list.plain_address(ip.address),
            "version": ip.ip_version,
            **{name: getattr(ip, name) for name in ("primary", "ptr", "gateway", "netmask")},
            **{name: as_text(getattr(ip, name)) for name in ("price_monthly", "added_at")},
        }
        for ip in found
    ]
