"""The options of a receiver, checked, and the secrets that deliveries may be signed with."""

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pulumi_hosting.api.secrets import Secret
from pulumi_hosting.client.client import Client
from pulumi_hosting.client.exceptions import ConfigurationError

SECRET_VARIABLE = "HOSTING_WEBHOOK_SECRET"  # noqa: S105  # the name of a variable


SecretText = Annotated[
    Secret, BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)
]


class ReceiverOptions(BaseModel):
    """What a receiver listens on, whom it trusts, and where it keeps events.

    - ``port``: 0 to 65535; 0 takes a free port and logs it. ``host``: the address to listen on. ``path``: the
      path of the subscription's URL.
    - ``secret``: the subscription's ``whsec_…``, or several while one replaces another. ``secret_file``: a
      file with one secret on each line, read at each delivery. Without both the environment variable
      ``HOSTING_WEBHOOK_SECRET`` is read, several separated by commas.
    - ``tolerance``: how many seconds the time of a delivery may be off, 1 to 300.
    - ``state_file``: where events are kept. Without it ``$XDG_STATE_HOME/hosting/webhook-<port>.sqlite``,
      with ``~/.local/state`` where that variable is not set.
    - ``certfile``, ``keyfile``: a certificate chain and its private key in PEM form, to answer https. Without
      them: http.
    - ``subscription``: the id of the subscription, to fetch events that never arrived. ``lookback``: how old
      they may be, in seconds. ``api_key`` (live, scope ``webhooks:manage``), ``base_url`` and ``ca_file`` are
      those of the client for it.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True
    )

    # A description completes the sentence "<option> must be …" of an error.
    port: Annotated[int, Field(ge=0, le=65535, description="a whole number from 0 to 65535")]
    host: Annotated[str, Field(min_length=1, description="an address to listen on, such as 127.0.0.1")] = (
        "127.0.0.1"
    )
    path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._~/-]*$", description="a path such as /hosting")] = "/"
    secret: Annotated[
        list[SecretText] | None,
        BeforeValidator(lambda value: [value] if isinstance(value, str | Secret) else value),
        Field(description="the subscription's whsec_…, or a list of them"),
    ] = None
    secret_file: Annotated[Path | None, Field(description="the path of a file")] = None
    tolerance: Annotated[int, Field(ge=1, le=300, description="a whole number of seconds from 1 to 300")] = (
        300
    )
    state_file: Annotated[Path | None, Field(description="the path of a file")] = None
    certfile: Annotated[Path | None, Field(description="the path of a file")] = None
    keyfile: Annotated[Path | None, Field(description="the path of a file")] = None
    subscription: Annotated[
        int | None, Field(ge=1, description="the id of a subscription, a whole number above 0")
    ] = None
    lookback: Annotated[int, Field(ge=0, description="a whole number of seconds, 0 or more")] = 30 * 86400
    api_key: Annotated[SecretText | None, Field(description="an API key, vk_live_…")] = None
    base_url: Annotated[str | None, Field(description="a URL that ends in /v1")] = None
    ca_file: Annotated[Path | None, Field(description="the path of a file")] = None

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The options of a mapping, as a configuration file holds them. Raises ``ConfigurationError``: one
        line that names every wrong option, and repeats no value."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            wrong = dict.fromkeys(
                str(one["loc"][0]) for one in error.errors(include_input=False, include_context=False)
            )
        # Raised outside of the handler: the ValidationError, which holds the values, is not its context.
        problems = [
            f"{name} must be {cls.model_fields[name].description}"
            if name in cls.model_fields
            else f"{name} is no option"
            for name in wrong
        ]
        raise ConfigurationError(f"webhook receiver: {'; '.join(problems)}. Next: correct the options")

    @property
    def state_path(self) -> Path:
        if self.state_file is not None:
            return self.state_file.expanduser()
        home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return Path(home).expanduser() / "hosting" / f"webhook-{self.port}.sqlite"

    def tls(self) -> ssl.SSLContext | None:
        """The server's side of TLS, or ``None`` for http. Raises ``ConfigurationError`` for a certificate or
        key that cannot be used."""
        if self.certfile is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certfile, self.keyfile)
        except OSError:
            raise ConfigurationError(
                "certfile and keyfile are no certificate with its key in PEM form, or cannot be read"
            ) from None
        return context

    def client(self) -> Client | None:
        """The client that fetches missed events, or ``None`` without ``subscription``. Raises
        ``ConfigurationError`` for a key that may not do so."""
        if self.subscription is None:
            return None
        client = Client(
            self.api_key, self.base_url, timeout=10.0, deadline=20.0, ca_file=self.ca_file, read_only=True
        )
        if client.is_test_key:
            raise ConfigurationError(
                "subscription needs a live API key: test keys may not read webhooks. Next: give a live key, "
                "or leave subscription out"
            )
        return client


class WebhookSecrets:
    """The secrets that a delivery may be signed with: those of the options, else of the environment. Raises
    ``ConfigurationError`` if there is none, or one that no subscription has (API document: "prefix
    ``whsec_``")."""

    def __init__(self, options: ReceiverOptions) -> None:
        self._fixed = list(options.secret or ())
        self._file = options.secret_file.expanduser() if options.secret_file else None
        source = "secret" if self._fixed else "secret_file" if self._file else SECRET_VARIABLE
        if source == SECRET_VARIABLE:
            self._fixed = [*map(Secret, os.environ.get(SECRET_VARIABLE, "").replace(",", " ").split())]
        try:
            usable = self.current()
        except (OSError, ValueError):
            raise ConfigurationError(
                f"secret_file cannot be read: {self._file}. Next: check its path and mode"
            ) from None
        if not usable or not all(re.fullmatch(r"whsec_[!-~]+", secret.reveal()) for secret in usable):
            what = f"{source} holds what is no webhook secret (not shown)" if usable else "no webhook secret"
            step = f"set {source} to the subscription's whsec_…, shown when it is created or rotated"
            raise ConfigurationError(f"{what}. Next: {step}")

    def current(self) -> list[Secret]:
        """All secrets, those of the file as it is now. Raises ``OSError`` or ``ValueError`` when the file
        cannot be read."""
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file else []
        return [*self._fixed, *(Secret(line.strip()) for line in lines if line.strip())]
