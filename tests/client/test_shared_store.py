"""The one store of small shared values, as files: in the private directory, and in the folder of a run."""

import errno
import os
import threading
from pathlib import Path

import pytest

from pulumi_hosting.client.private_directory import LocalFilesError
from pulumi_hosting.client.shared_store import Files, LockTimeout
from tests.support.waiting import HANG_SECONDS


@pytest.fixture(params=["private", "run"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    private = tmp_path / "run"
    private.mkdir(mode=0o700)
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(private))
    return Files() if request.param == "private" else Files(private)


def test_a_value_is_what_was_written_last(files: Files) -> None:
    assert files.read("a.json") is None
    for survives in (True, False):
        files.write("a.json", b"12", survives=survives)
        assert files.read("a.json") == b"12"
    files.forget("a.json")
    files.forget("a.json")
    assert files.read("a.json") is None


def test_names_match_a_pattern(files: Files) -> None:
    for name in ("a.order", "b.order", "c.open"):
        files.write(name, b"1")
    assert sorted(files.names("*.order")) == ["a.order", "b.order"]
    assert [*files.names("*.rate")] == []


def test_a_folder_that_is_gone_has_no_names_and_one_that_is_no_folder_says_so(tmp_path: Path) -> None:
    assert Files(tmp_path / "gone").names("*") == []
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotADirectoryError):
        Files(file).names("*")


def test_what_is_changed_is_kept_and_what_is_not_is_not_written(files: Files) -> None:
    with files.changing("a.json") as values:
        assert values == {}
    assert files.read("a.json") is None
    with files.changing("a.json") as values:
        values["list"] = []
    with files.changing("a.json") as values:
        values["list"].append(1)
    assert files.note("a.json") == {"list": [1]}
    written = files.path("a.json").stat().st_mtime_ns, files.path("a.json").stat().st_ino
    with files.changing("a.json"):
        pass
    assert (files.path("a.json").stat().st_mtime_ns, files.path("a.json").stat().st_ino) == written


def test_a_change_that_fails_is_not_kept_and_frees_the_lock(files: Files) -> None:
    files.keep("a.json", {"a": 1})
    with pytest.raises(ZeroDivisionError), files.changing("a.json") as values:
        values["a"] = 1 / 0
    with files.lock("a.json", 0):
        assert files.note("a.json") == {"a": 1}


def test_a_lock_without_a_limit_waits_for_its_holder(files: Files) -> None:
    waiting, order = threading.Event(), list[str]()

    def second() -> None:
        with files.lock("it", on_wait=waiting.set):
            order.append("second")

    with files.lock("it"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(HANG_SECONDS)
        with pytest.raises(LockTimeout, match=r"^the thing: another process on this machine"):
            files.lock("it", 0, what="the thing").__enter__()
        order.append("first")
    thread.join(HANG_SECONDS)
    assert order == ["first", "second"]


def test_a_damaged_note_is_named(files: Files) -> None:
    files.write("a.json", b"{")
    with pytest.raises(LocalFilesError, match=r"a\.json is damaged\. Next: delete that file and run again$"):
        files.note("a.json")


def test_only_what_survives_waits_for_the_disk(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    for size in (10, 5000):
        files.write("a.json", b"x" * size)
    assert synced == []
    files.write("a.json", b"x", survives=True)
    assert len(synced) == 1


def test_a_failed_write_leaves_the_old_value_and_no_draft(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.json", b"old", survives=True)

    drafts = list[Path]()

    def replace(made: str, _: Path) -> None:
        drafts.append(Path(made))
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises((OSError, LocalFilesError), match="Input/output error"):
        files.write("a.json", b"new", survives=True)
    assert files.read("a.json") == b"old"
    (draft,) = drafts
    assert draft.parent == files.path("a.json").parent  # on the same disk: it is renamed in one step
    assert [path.name for path in draft.parent.iterdir()] == ["a.json"]


def test_what_lost_its_power_is_no_note(files: Files) -> None:
    for lost in (b"", b"\0\0"):
        files.write("a.json", lost)
        assert files.note("a.json") == {}


def test_a_small_value_of_the_private_directory_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one call, which leaves nothing of the value before."""
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))
    files, kept = Files(), list[tuple[bytes | None, int]]()
    for data in (b"x" * 4096, b"[1]", b"x" * 4097, b"[2]", b"[3]"):
        files.write("a.json", data)
        kept.append((files.read("a.json"), files.path("a.json").stat().st_ino))
    assert [data for data, _ in kept] == [b"x" * 4096, b"[1]".ljust(4096), b"x" * 4097, b"[2]", b"[3]"]
    first, second, third, fourth, fifth = (inode for _, inode in kept)
    assert first == second != third != fourth == fifth


def test_a_value_that_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "run"))
    files = Files()
    files.path("a.json").mkdir()
    with pytest.raises(LocalFilesError, match=r"^cannot use the file .*/a\.json: "):
        files.forget("a.json")


def test_a_value_of_a_run_is_replaced_for_those_who_read_it_without_its_lock(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.write("a.json", b"old")
    with files.path("a.json").open("rb") as reading:
        files.write("a.json", b"new")
        assert reading.read() == b"old"
    assert files.read("a.json") == b"new"


def test_the_folder_of_a_run_fails_as_the_system_does(tmp_path: Path) -> None:
    """The advice of the private directory is about HOSTING_RUNTIME_DIR, which does not move it."""
    files = Files(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        files.write("a.json", b"1")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Files(tmp_path).read("link")
