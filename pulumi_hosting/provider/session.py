"""What one provider process shares: the client and what it has seen of whose objects are whose."""

import os
import threading
from collections.abc import Callable, Mapping

from pulumi_hosting.api.client import Client
from pulumi_hosting.api.errors import ConfigurationError
from pulumi_hosting.api.redact import Secret
from pulumi_hosting.resources.base import Context
from pulumi_hosting.resources.claims import Claims

API_KEY, BASE_URL = "HOSTING_API_KEY", "HOSTING_BASE_URL"


class Session:
    """Made once per process. Environment first, then stack configuration: what an engine stores may be stale, the environment is not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._settings: tuple[Secret | None, str | None] = (None, None)
        self.claims = Claims()

    def configure(self, config: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> None:
        """Take ``apiKey`` and ``baseUrl``; nothing is sent and nothing is checked before the first call."""
        key = environ.get(API_KEY) or config.get("apiKey")
        settings = (Secret(key) if key else None, environ.get(BASE_URL) or config.get("baseUrl"))
        with self._lock:
            if settings != self._settings:
                self._settings, self._client = settings, None

    @property
    def client(self) -> Client:
        with self._lock:
            if self._client is None:
                api_key, base_url = self._settings
                for value, variable, setting in ((api_key, API_KEY, "--secret hosting:apiKey"), (base_url, BASE_URL, "hosting:baseUrl")):
                    if not value:
                        raise ConfigurationError(f"{variable} is not set. Next: set it, or run pulumi config set {setting} …")
                self._client = Client(api_key, base_url)
            return self._client

    def context(self, identity: str, wait_timeout: float | None, tell: Callable[[str], None]) -> Context:
        return Context(
            client=self.client,
            identity=identity,
            owned=self.claims.of(identity),
            claims=self.claims,
            wait_timeout=wait_timeout or 600.0,
            tell=tell,
            warn=lambda line: tell(f"warning: {line}"),
        )


SESSION = Session()
