"""The spelling of domain names and of host names."""

import idna


def ascii_name(name: str) -> str:
    """One spelling per domain: punycode, lower case, no dot at the end.

    >>> ascii_name("Münster.Example.")
    'xn--mnster-3ya.example'
    """
    try:
        return idna.encode(name.rstrip("."), uts46=True).decode().lower()
    except idna.IDNAError:
        raise ValueError("must be a domain name, in Unicode or punycode") from None


def domain_name(name: str) -> str:
    plain = ascii_name(name)
    if "." not in plain:
        raise ValueError("must be a whole domain name, such as example.com")
    return plain


def unicode_name(name: str) -> str | None:
    """The name as people read it, if that is another spelling.

    >>> unicode_name("xn--mnster-3ya.example"), unicode_name("example.com")
    ('münster.example', None)
    """
    try:
        read = idna.decode(name)
    except (idna.IDNAError, UnicodeError):
        return None
    return read if read != name else None


def host_names(hosts: list[str]) -> list[str]:
    """In one spelling; what is none, in an answer, as it came."""

    def spelled(host: str) -> str:
        try:
            return ascii_name(host)
        except ValueError:
            return host.rstrip(".").lower()

    return sorted(map(spelled, hosts))
