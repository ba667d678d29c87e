"""Rewrites a tarball so that each build of the same files gives the same bytes. ansible-galaxy writes into it
when it was built, and the rights and the order of this machine's files.

    python tools/same_tarball.py dist/hosting-cloud-0.1.0.tar.gz
"""

import gzip
import io
import sys
import tarfile
from pathlib import Path

FIRST_TIME = 315_532_800
"""1980-01-01, the first time that every archive format can hold; wheels use it too."""


def rewrite(path: Path) -> None:
    with tarfile.open(path, "r:gz") as archive:
        members = [
            (member, archive.extractfile(member) if member.isfile() else None)
            for member in sorted(archive.getmembers(), key=lambda member: member.name)
        ]
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as made:
            for member, file in members:
                plain = tarfile.TarInfo(member.name)
                plain.type, plain.size, plain.linkname = member.type, member.size, member.linkname
                plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                plain.mtime = FIRST_TIME
                made.addfile(plain, file)
    path.write_bytes(gzip.compress(content.getvalue(), mtime=0))


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
