"""Links of pages by hand: to the site's pages, else to files of the repository once it is public."""

from pathlib import Path

import pytest

from generate.site import links

PAGE = "docs/order.md"
SITE = {PAGE: "order.md", "docs/cancel.md": "cancel.md", "pulumi_hosting/emulator/README.md": "emulator.md"}
TEXT = """See [cancel](cancel.md#a-domain), [the emulator](../pulumi_hosting/emulator/README.md),
[three
tiers](../examples/three-tier/README.md#run), [`dns-elsewhere`](../examples/dns-elsewhere/__main__.py),
`[no link](cancel.md)` and [a mistake](none.md).

    [no link](cancel.md)
"""


@pytest.mark.parametrize(
    ("files", "tiers", "dns"),
    [
        (
            "https://git.example.org/blob/main/",
            "[three\ntiers](https://git.example.org/blob/main/examples/three-tier/README.md#run)",
            "[`dns-elsewhere`](https://git.example.org/blob/main/examples/dns-elsewhere/__main__.py)",
        ),
        (None, "three\ntiers (`examples/three-tier/README.md`)", "`examples/dns-elsewhere/__main__.py`"),
    ],
)
def test_a_file_that_the_site_lacks_is_linked_only_in_a_public_repository(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: str | None, tiers: str, dns: str
) -> None:
    for name in ("examples/three-tier/README.md", "examples/dns-elsewhere/__main__.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / PAGE).write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(links, "ROOT", tmp_path)
    assert links.page(PAGE, SITE, files) == (
        f"See [cancel](cancel.md#a-domain), [the emulator](emulator.md),\n{tiers}, {dns},\n"
        "`[no link](cancel.md)` and [a mistake](none.md).\n\n    [no link](cancel.md)\n"
    )


def test_a_host_for_documentation_only_is_not_public() -> None:
    assert links.public("https://pulumi-hosting.example/source/") is None
    assert links.public("https://git.sr.ht/~a/b") == "https://git.sr.ht/~a/b"
