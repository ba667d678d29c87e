"""Key, address and options of a client, checked before anything is sent. No refusal repeats what it refuses:
it may be a secret.

``HOSTING_API_KEY`` (or ``HOSTING_API_KEY_FILE``, ``HOSTING_API_KEY_COMMAND``), ``HOSTING_BASE_URL`` and
``HOSTING_STORE`` stand in for parameters that are not given.
"""

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pulumi_hosting.api.secrets import Redactor, Secret, clean_text, quoted, without_tokens
from pulumi_hosting.api.values import is_loopback
from pulumi_hosting.client.exceptions import ConfigurationError
from pulumi_hosting.client.retry import RetryPolicy

API_KEY_VARIABLE = "HOSTING_API_KEY"
API_KEY_FILE_VARIABLE = "HOSTING_API_KEY_FILE"
API_KEY_COMMAND_VARIABLE = "HOSTING_API_KEY_COMMAND"
API_KEY_SOURCES = (API_KEY_FILE_VARIABLE, API_KEY_COMMAND_VARIABLE)
"""Where the key may be instead. Only the environment says so: a pull request can change stack configuration,
options and inventories, and the command would run where the live key is.
"""
BASE_URL_VARIABLE = "HOSTING_BASE_URL"
STORE_VARIABLE = "HOSTING_STORE"

_API_KEY = re.compile(r"[A-Za-z0-9_.\-]{8,256}")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_DATABASE = re.compile(r"(/[0-9]*)?")
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}|[0-9A-Fa-f:.]{2,45}")
_AGENT = re.compile(r"[ -~]{1,128}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
OUR_HEADERS = frozenset(
    ["accept", "accept-encoding", "authorization", "content-length", "content-type", "cookie", "host"]
).union(["idempotency-key", "transfer-encoding", "user-agent", "x-request-id"])
"""Headers that the client decides alone: those of these names in an ``http_client`` are not sent."""
_COMMAND_SECONDS = 10.0
_SOURCES: dict[Secret, str] = {}  # key → the variable of the environment that it came from


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to send, as whom, and how long to wait. ``timeout`` is seconds per attempt,
    ``rate_limit_timeout`` seconds that a call may wait for the rate limit; ``key_source`` where the key is
    set, in the words of advice; ``store`` the address of the store that machines share, None for the files
    of this one.
    """

    api_key: Secret
    is_test_key: bool
    base_url: str
    host: str
    timeout: float
    rate_limit_timeout: float
    retry_policy: RetryPolicy
    ca_file: str | None
    user_agent: str = field(repr=False)
    key_source: str
    store: Secret | None = None

    @property
    def key_hint(self) -> str:
        """Prefix and last four characters: enough to tell keys apart, useless to others."""
        key = self.api_key.reveal()
        prefix = next((start for start in ("vk_live_", "vk_test_") if key.startswith(start)), "")
        return f"{prefix}…{key[-4:]}" if len(key) >= 20 else f"{prefix}…"


def settings(
    api_key: str | Secret | None,
    base_url: str | None,
    *,
    timeout: float,
    deadline: float,
    rate_limit_timeout: float = 600.0,
    store: str | Secret | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    user_agent: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Checked settings; a parameter takes precedence over the environment. Raises ``ConfigurationError``."""
    environ = os.environ if environ is None else environ
    in_environment = environ.get(API_KEY_VARIABLE)  # a frontend that has found it there passes it on
    if api_key is None or (in_environment and Secret(api_key) == Secret(in_environment)):
        api_key = key_of_environment(environ)
    key = _checked_key(api_key)
    url, host = _checked_url(base_url if base_url is not None else environ.get(BASE_URL_VARIABLE))
    check_seconds(timeout=timeout, deadline=deadline, rate_limit_timeout=rate_limit_timeout)
    if ca_file is not None and not Path(ca_file).is_file():
        raise ConfigurationError(
            "ca_file is not a file: give the path of a file with certificates in PEM form"
        )
    if user_agent is not None and not _AGENT.fullmatch(user_agent):
        raise ConfigurationError("user_agent must be 1 to 128 printable ASCII characters")
    return Settings(
        api_key=key,
        is_test_key=key.reveal().startswith("vk_test_"),
        base_url=url,
        host=host,
        timeout=float(timeout),
        rate_limit_timeout=float(rate_limit_timeout),
        retry_policy=RetryPolicy(deadline=float(deadline)),
        ca_file=None if ca_file is None else os.fspath(ca_file),
        user_agent=f"pulumi-hosting/{_version()}" + (f" {user_agent}" if user_agent else ""),
        key_source=source if environ.get(source := _SOURCES.get(key, "")) else "{key_setting}",
        store=checked_store(store if store is not None else environ.get(STORE_VARIABLE)),
    )


def check_seconds(**limits: float) -> None:
    """Raise ``ConfigurationError`` for a limit that is no number of seconds."""
    for name, seconds in limits.items():
        if not isinstance(seconds, int | float) or not 0 < seconds <= 86_400:
            raise ConfigurationError(f"{name} must be a number of seconds above 0 and at most 86400")


def with_limits(settings: Settings, timeout: float | None, deadline: float | None) -> Settings:
    """The settings with other limits, if they are given. Raises ``ConfigurationError``."""
    timeout = settings.timeout if timeout is None else timeout
    deadline = settings.retry_policy.deadline if deadline is None else deadline
    check_seconds(timeout=timeout, deadline=deadline)
    policy = replace(settings.retry_policy, deadline=float(deadline))
    return replace(settings, timeout=float(timeout), retry_policy=policy)


def checked_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Headers of a user, which are sent besides ours. Raises ``ConfigurationError``."""
    for name, value in given.items():
        if not isinstance(name, str) or not _HEADER.fullmatch(name) or name.lower() in OUR_HEADERS:
            raise ConfigurationError(
                f"headers: {clean_text(str(name), 64)} must be the name of a header not set by the client"
            )
        if not isinstance(value, str) or not _AGENT.fullmatch(value):
            raise ConfigurationError(f"headers: {name} must be 1 to 128 printable ASCII characters")
    return dict(given)


def check_http_client(http_client: object, *, alone: bool, is_async: bool = False) -> None:
    """Raise ``ConfigurationError`` for what is no ``httpx.Client``, or ``httpx.AsyncClient`` if it
    ``is_async``, and if another option would do the same (not ``alone``).
    """
    if not callable(getattr(http_client, "send", None)) or hasattr(http_client, "aclose") is not is_async:
        raise ConfigurationError(
            "http_client must be an httpx.AsyncClient"
            if is_async
            else "http_client must be an httpx.Client, which is not asynchronous"
        )
    if not alone:
        raise ConfigurationError(
            "http_client brings its own transport and certificates. Next: leave out transport and ca_file, "
            "and set them on http_client"
        )


def key_of_environment(environ: Mapping[str, str]) -> Secret | None:
    """The API key that the environment holds, or names a file or a command for; None if it does neither.
    The command runs once in a process.

    Raises ``ConfigurationError`` for several of them, a file that others can read, and a command that fails.
    """
    given = [name for name in (API_KEY_VARIABLE, *API_KEY_SOURCES) if environ.get(name, "").strip()]
    if len(given) > 1:
        raise ConfigurationError(
            f"{' and '.join(given)} are set, and there can be one API key only. Next: unset all but one"
        )
    for name in given:
        key = Secret(environ[name].strip())
        if name in API_KEY_SOURCES:
            read: Callable[[str], Secret] = _key_in_file if name == API_KEY_FILE_VARIABLE else _key_of_command
            key = _checked_key(read(environ[name]), name)
        _SOURCES[key] = name
        return key
    return None


def _key_in_file(path: str) -> Secret:
    if not os.path.isabs(path):
        raise ConfigurationError(f"{API_KEY_FILE_VARIABLE} must be an absolute path. Next: correct it")
    where, step = f"{API_KEY_FILE_VARIABLE}: {path}", f"Next: correct {API_KEY_FILE_VARIABLE}"
    try:
        opened = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  # closed below
    except OSError as error:
        raise ConfigurationError(f"{where} cannot be read: {error.strerror}. {step}") from None
    with opened:
        about = os.fstat(opened.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ConfigurationError(f"{where} is no file. {step}")
        # root may let a service read a credential through its group, or through an ACL, which looks the same:
        # systemd and Kubernetes do.
        is_credential = about.st_uid == 0 != os.geteuid()
        mode = stat.S_IMODE(about.st_mode)
        if mode & (0o037 if is_credential else 0o077):
            raise ConfigurationError(
                f"{where} can be read or written by other users (mode {mode:04o}). "
                f"Next: chmod 600 {shlex.quote(path)}"
            )
        return Secret(opened.read(4096).decode(errors="replace"))


def _without_waiting(path: str, flags: int) -> int:
    """A pipe would wait for another process to write into it."""
    return os.open(path, flags | os.O_NONBLOCK)


@cache
def _key_of_command(command: str) -> Secret:
    key, problem = _run(command)
    if problem:
        raise ConfigurationError(
            f"{API_KEY_COMMAND_VARIABLE}: the command {problem}. Next: run it in a shell, and correct it"
        )
    return key


def _run(command: str) -> tuple[Secret, str]:
    """What a command prints on standard output, and in words what went wrong. The words repeat no part of the
    command, which may be a secret. No frame that raises has standard output in a variable.
    """
    nothing = Secret("")
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return nothing, f"did not end within {_COMMAND_SECONDS:.0f} s"
    except OSError as error:
        return nothing, f"cannot be started: {error.strerror}"
    except ValueError:
        return nothing, "has an open quote"
    key = Secret(done.stdout.decode(errors="replace").strip())
    if key and done.returncode == 0:
        return key, ""
    problem = f"ended with exit code {done.returncode}" if done.returncode else "printed no key"
    said = without_tokens(Redactor([key])(done.stderr.decode(errors="replace"))).strip()
    return nothing, f"{problem}: {clean_text(said, 500)}" if said else problem


def _checked_key(given: str | Secret | None, where: str = API_KEY_VARIABLE) -> Secret:
    key = given.reveal() if isinstance(given, Secret) else given
    key = key.strip() if isinstance(key, str) else ""
    given_by_name = where != API_KEY_VARIABLE
    if not key:
        step = f"write it into the file of {where}" if given_by_name else "set {api_key}"
        raise ConfigurationError(f"no API key. Next: {step}")
    if not _API_KEY.fullmatch(key):
        raise ConfigurationError(
            "the API key has characters or a length that no key has (it is not shown here). Next: correct "
            + (where if given_by_name else "{api_key}")
        )
    return Secret(key)


def _checked_url(given: str | None) -> tuple[str, str]:
    """The base URL without a slash at its end, and its host and port for messages."""
    where = "Next: correct {base_url}"
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError("no base URL. Next: set {base_url}, for example https://api.example.com/v1")
    # With a user name or query it may hold a password or token.
    shown = "" if {*"@?#"} & {*given} else f"{quoted(given)} "
    try:
        parts = urlsplit(given.strip())
        port = parts.port
        host = parts.hostname or ""
    except ValueError:
        parts, port, host = None, None, ""
    if parts is None or not _HOST.fullmatch(host):
        raise ConfigurationError(f"the base URL {shown}is not a URL with a host. {where}")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"the base URL must not hold a user name or password (it is not shown here). {where}"
        )
    if parts.query or parts.fragment or "?" in given or "#" in given:
        raise ConfigurationError(f"the base URL must not hold a query or fragment. {where}")
    path = parts.path.rstrip("/")
    if not _PATH.fullmatch(path) or any(segment in (".", "..") for segment in path.split("/")):
        raise ConfigurationError(f"the path of the base URL has characters that are not allowed. {where}")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ConfigurationError(
            f"the base URL {shown}must be https; plain http is only allowed for localhost, because it would "
            f"expose the API key. {where}"
        )
    authority = (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")
    return f"{parts.scheme}://{authority}{path}", authority


def checked_store(given: str | Secret | None) -> Secret | None:
    """The address of the shared store; None if there is none. Raises ``ConfigurationError``."""
    if given is None:
        return None
    url = Secret(given).reveal().strip()
    if problem := store_problem(url):
        raise ConfigurationError(f"store {problem}. Next: correct {STORE_VARIABLE} or store, or unset it")
    return Secret(url)


def store_problem(url: str) -> str | None:
    """Why this cannot be the address of a shared store; None if it can. It is not repeated: it may hold a
    password.

    >>> store_problem("redis://cache.example.com:6379/0")
    >>> store_problem("redis://:part#rest@cache.example.com") == store_problem("")
    True
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.port != 0
        # else the library takes another database, or a part of the password for the host
        is_address &= bool(_DATABASE.fullmatch(parts.path)) and not parts.fragment and "@" not in parts.query
    except ValueError:  # its port
        is_address = False
    wanted = (
        "must begin with redis:// or rediss://, name a host, and end with the number of a database at most; "
        "a password has / ? # as %2F %3F %23 (it is not shown here)"
    )
    return None if is_address else wanted


@cache
def _version() -> str:
    from importlib import metadata  # read at the first client, not at import: it costs milliseconds

    try:
        return metadata.version("pulumi-hosting")
    except metadata.PackageNotFoundError:
        return "0"
