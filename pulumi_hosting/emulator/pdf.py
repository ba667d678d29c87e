"""An invoice as a PDF of one page: a few objects and a cross-reference table, which is all a reader needs."""

from typing import Any

from pulumi_hosting.emulator.rows import Account


def invoice(view: dict[str, Any], account: Account) -> bytes:
    """``view`` is the invoice as the API shows it."""
    lines = [
        f"Invoice {view['id']}",
        f"Account: {account.login} <{account.email}>",
        f"Status: {view['status']}",
        f"Type: {view['type']}",
        f"Created: {view['created_at']}",
        f"Paid: {view['paid_at'] or '-'}",
        *(f"{item['description']}: {item['amount']} {view['currency']}" for item in view["items"]),
        f"Total: {view['amount']} {view['currency']}",
    ]
    return document(lines)


def _text(line: str) -> bytes:
    # The page's font knows Latin-1 only; the rest becomes question marks, as in many a real invoice.
    raw = line.encode("latin-1", "replace")
    return raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def document(lines: list[str]) -> bytes:
    shown = b"BT /F1 11 Tf 56 780 Td 16 TL " + b" ".join(b"(" + _text(line) + b") Tj T*" for line in lines) + b" ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown),
    ]
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)
