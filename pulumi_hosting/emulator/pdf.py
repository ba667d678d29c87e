"""An invoice as a PDF of one page, from a fixed template: only its text varies."""

from pulumi_hosting.emulator.formats import View
from pulumi_hosting.emulator.rows import AccountRow

# The text comes after all other objects, so the offsets in the cross-reference table do not change.
TEMPLATE = rb"""%%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]
  /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >> endobj
4 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> endobj
5 0 obj << /Length %d >>
stream
BT /F1 11 Tf 56 780 Td 16 TL %b ET
endstream endobj
"""
TAIL = b"""xref
0 6
0000000000 65535 f\x20
0000000009 00000 n\x20
0000000058 00000 n\x20
0000000115 00000 n\x20
0000000243 00000 n\x20
0000000340 00000 n\x20
trailer << /Size 6 /Root 1 0 R >>
startxref
%d
%%%%EOF
"""


def invoice(view: View, account: AccountRow) -> bytes:
    """``view`` is the invoice as the API shows it. Characters outside Latin-1 become question marks."""
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
    text = b" ".join(b"(%b) Tj T*" % _escaped(line) for line in lines)
    body = TEMPLATE % (len(text) + len(b"BT /F1 11 Tf 56 780 Td 16 TL  ET"), text)
    return body + TAIL % len(body)


def _escaped(line: str) -> bytes:
    return (
        line.encode("latin-1", "replace").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
    )
