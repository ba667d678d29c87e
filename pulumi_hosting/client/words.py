"""What advice names: commands, options and settings, in the words of the person who reads it.

A frontend has one table, and gives it to its clients (``Client.words``); errors and lines that say what to do
next take it from there. So nothing below a frontend names a command of one.
"""

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Words:
    """The table of a frontend. Each entry is a part of a sentence.

    - ``again``: how to do the same once more. ``repeat``: how to repeat a request with a key whose outcome is
      not known; ``{key}`` in it is the key.
    - ``read``, ``apply``, ``remove``: what looks at what is declared, brings it about, and deletes it;
      ``read_and_apply``: the first two.
    - ``api_key``, ``base_url``, ``rate_limit_timeout``: where these are set; ``key_setting``: where the key
      is set outside of the environment.
    - ``reset``: what makes another root password of server ``{id}``. ``renew``: what pays the ``{kind}``
      further; ``top_up``: what asks for a top-up; ``pay``: what pays invoice ``{id}``.
    - ``forget``: how to forget what was only simulated; empty if nothing remembers it.
    """

    again: str
    repeat: str
    read: str
    apply: str
    read_and_apply: str
    remove: str
    api_key: str
    key_setting: str
    base_url: str
    rate_limit_timeout: str
    reset: str
    renew: str
    top_up: str
    pay: str
    forget: str

    def fill(self, advice: str) -> str:
        """Advice in these words: it has the names of entries in braces.

        >>> PYTHON.fill("{again} later")
        'repeat the call later'
        """
        known = {f"{{{name}}}": str(getattr(self, name)) for name in self.__slots__}
        return re.sub(r"\{\w+\}", lambda found: known.get(found[0], found[0]), advice)


PYTHON = Words(
    again="repeat the call",
    repeat='repeat the same call with idempotency_key="{key}"; the service carries it out once only',
    read="a read",
    apply="the same call",
    read_and_apply="the same call",
    remove="a deletion",
    api_key="HOSTING_API_KEY or api_key",
    key_setting="api_key",
    base_url="HOSTING_BASE_URL or base_url",
    rate_limit_timeout="rate_limit_timeout",
    reset="client.servers.reset_password({id})",
    renew="pulumi-hosting action {kind}-renew --id {id} --until {until}",
    top_up="pulumi-hosting action balance-topup --amount {amount} --balance-below {due} --gateway {gateway}",
    pay="pulumi-hosting action invoice-pay --id {id}",
    forget="",
)
"""The words of a program that uses the client."""

COMMAND_LINE = replace(
    PYTHON,
    again="run the same command again",
    repeat="run the same command again: it finds what was done, and pays nothing twice",
    read="the same command with --preview-only",
    apply="the same command",
    read_and_apply="the same command",
    api_key="HOSTING_API_KEY",
    base_url="HOSTING_BASE_URL",
    rate_limit_timeout="HOSTING_RATE_LIMIT_TIMEOUT",
    reset="pulumi-hosting action server-password --id {id} --password-file FILE",
)
"""The words of a command of ``pulumi-hosting``."""
