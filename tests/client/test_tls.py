"""Which certificates are trusted."""

import ssl
from pathlib import Path

import pytest

from pulumi_hosting.client import httpx_connection
from pulumi_hosting.client.exceptions import (
    ConfigurationError,
)
from tests.client.http_server import client_for, send, serving


def test_a_certificate_is_trusted_only_if_its_issuer_is(certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    with serving(send, server) as url:
        with client_for(url) as client, pytest.raises(ConfigurationError, match=r"not trusted.*ca_file"):
            client.health()
        with client_for(url, ca_file=certificate[0]) as client:
            assert client.health().status == "ok"
        # The certificate names 127.0.0.1 and nothing else.
        other = url.replace("127.0.0.1", "localhost")
        with (
            client_for(other, ca_file=certificate[0]) as client,
            pytest.raises(ConfigurationError, match="not trusted"),
        ):
            client.health()


def test_the_context_is_strict_and_made_once(certificate: tuple[Path, Path]) -> None:
    context = httpx_connection.tls_context(None)
    assert context is httpx_connection.tls_context(None)
    assert context is not httpx_connection.tls_context(str(certificate[0]))
    for one in (context, httpx_connection.tls_context(str(certificate[0]))):
        assert one.verify_mode == ssl.CERT_REQUIRED
        assert one.check_hostname
        assert one.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_file_without_certificates_is_a_configuration_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with (
        client_for("https://127.0.0.1:9/v1", ca_file=empty) as client,
        pytest.raises(ConfigurationError, match="ca_file"),
    ):
        client.health()
