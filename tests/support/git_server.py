"""A git server on loopback, on https and port 443. Pulumi's CLI takes no other address of a repository: with
a port, it would make a virtual environment in a folder with a colon in its name, which Python refuses.
"""

import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def _certificate(folder: Path) -> Path:
    """A certificate of this machine's loopback address, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    encoding = serialization.Encoding.PEM
    form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(encoding, form, encryption) + made.public_bytes(encoding))
    bundle = Path(os.environ.get("SSL_CERT_FILE") or certifi.where()).read_bytes()
    (folder / "trusted.pem").write_bytes(bundle + b"\n" + made.public_bytes(encoding))
    return path


@contextmanager
def serving(root: Path, folder: Path) -> Iterator[Path]:
    """Serve the bare repositories below ``root``. Gives a file with the certificates to trust. Raises
    ``PermissionError`` where only root may listen on port 443.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            length = int(self.headers.get("Content-Length") or 0)
            environ = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "CONTENT_LENGTH": str(length),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
            }
            answer = subprocess.run(
                ["git", "http-backend"],
                input=self.rfile.read(length),
                env=environ,
                capture_output=True,
                check=True,
            ).stdout
            head, _, body = answer.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test looks at what Pulumi prints."""

    certificate = _certificate(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 443), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield folder / "trusted.pem"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
