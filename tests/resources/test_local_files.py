"""Private files that local processes share: one holder per lock, only this user's files, no key material."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pulumi_hosting.exactly_once import local_files
from pulumi_hosting.exactly_once.local_files import LocalFilesError, LockTimeout, Scope
from tests.support.waiting import HANG_SECONDS


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "run"
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(path))
    return path


def test_importing_the_package_does_not_load_filelock() -> None:
    modules = "pulumi_hosting, pulumi_hosting.exactly_once.local_files, pulumi_hosting.resources.server_ip"
    code = f"import sys, {modules}; assert 'filelock' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_directory_and_files_are_private(runtime: Path) -> None:
    with local_files.lock(Scope("scope"), "server 20001", 1):
        local_files.write(Scope("scope"), "server 20001", {"a": 1})
    assert local_files.read(Scope("scope"), "server 20001") == {"a": 1}
    assert runtime.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in runtime.iterdir()} == {0o600}
    assert sorted(path.suffix for path in runtime.iterdir()) == [".json", ".lock"]


def test_what_was_never_written_is_empty_and_scopes_are_apart(runtime: Path) -> None:
    local_files.write(Scope("one"), "server 20001", {"a": 1})
    assert local_files.read(Scope("two"), "server 20001") == {}
    assert local_files.read(Scope("one"), "server 20002") == {}


def test_a_second_holder_in_the_process_waits(runtime: Path) -> None:
    order: list[str] = []
    entered, waiting = threading.Event(), threading.Event()

    def second() -> None:
        entered.wait()
        with local_files.lock(Scope("scope"), "it", 60, on_wait=waiting.set):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with local_files.lock(Scope("scope"), "it", 60):
        entered.set()
        assert waiting.wait(HANG_SECONDS)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_another_process_waits_and_says_what_to_do_when_it_gives_up(runtime: Path) -> None:
    code = (
        "from pulumi_hosting.exactly_once import local_files\n"
        "try:\n with local_files.lock(local_files.Scope('scope'), 'server 20001', 0): print('held')\n"
        "except local_files.LockTimeout as error: print(error)\n"
    )
    ask = [sys.executable, "-c", code]
    with local_files.lock(Scope("scope"), "server 20001", 1):
        refused = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
    assert refused == (
        "server 20001: another process on this machine is working on it and did not finish within 0 s; "
        "nothing was sent. "
        "Next: wait for the other run to end, or end it, then run again\n"
    )
    assert subprocess.run(ask, check=True, capture_output=True, text=True).stdout == "held\n"


def test_a_killed_holder_releases_the_lock(runtime: Path) -> None:
    code = (
        "import sys; from pulumi_hosting.exactly_once import local_files\n"
        "with local_files.lock(local_files.Scope('scope'), 'it', 1):\n"
        " print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockTimeout), local_files.lock(Scope("scope"), "it", 0):
            pass
        holder.kill()
        holder.wait()
    with local_files.lock(Scope("scope"), "it", 60):
        pass


def test_a_wait_can_be_ended(runtime: Path) -> None:
    class Ended(Exception):
        pass

    def end() -> None:
        raise Ended

    with (
        local_files.lock(Scope("scope"), "it", 1),
        pytest.raises(Ended),
        local_files.lock(Scope("scope"), "it", 60, check=end),
    ):
        pass


def test_a_directory_that_others_can_use_is_refused(runtime: Path) -> None:
    runtime.mkdir(mode=0o755)
    with pytest.raises(
        LocalFilesError,
        match=r"can be used by others \(mode 755\)\. Next: chmod 700 it, or "
        r"set HOSTING_RUNTIME_DIR",
    ):
        local_files.directory()
    runtime.chmod(0o700)
    assert local_files.directory() == runtime


def test_a_link_in_the_place_of_the_directory_is_refused(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    runtime.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LocalFilesError, match="is not a directory"):
        local_files.directory()


def test_another_users_directory_is_refused(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: runtime.stat().st_uid + 1)
    with pytest.raises(LocalFilesError, match="belongs to user"):
        local_files.directory()


@pytest.mark.parametrize("kind", ["json", "lock"])
def test_a_link_in_the_place_of_a_file_is_refused(runtime: Path, tmp_path: Path, kind: str) -> None:
    with local_files.lock(Scope("scope"), "it", 1):
        local_files.write(Scope("scope"), "it", {"a": 1})
    target = tmp_path / "precious"
    target.write_text("mine")
    path = next(path for path in runtime.iterdir() if path.suffix == f".{kind}")
    path.unlink()
    path.symlink_to(target)
    with (
        pytest.raises(LocalFilesError, match="is not a file of this user"),
        local_files.lock(Scope("scope"), "it", 1),
    ):
        local_files.write(Scope("scope"), "it", {"a": 2})
    assert target.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_a_damaged_file_is_named(runtime: Path, text: str) -> None:
    local_files.write(Scope("scope"), "it", {})
    next(runtime.iterdir()).write_text(text, encoding="latin-1")
    with pytest.raises(LocalFilesError, match=r"is damaged\. Next: delete that file and run again"):
        local_files.read(Scope("scope"), "it")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOSTING_RUNTIME_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(LocalFilesError, match="Next: set HOSTING_RUNTIME_DIR"):
        local_files.directory()


def test_the_runtime_directory_of_the_session_comes_before_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOSTING_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    assert local_files.directory() == tmp_path / f"pulumi-hosting-{os.geteuid()}"
    (tmp_path / "session").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "session"))
    assert local_files.directory() == tmp_path / "session" / "pulumi-hosting"


# --- platforms and file systems where it cannot work


def test_a_platform_without_posix_locks_is_named(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(
        LocalFilesError,
        match=r"has no POSIX file locks.*Next: run it on Linux or macOS, on "
        r"Windows in WSL 2",
    ):
        local_files.directory()
    assert not runtime.exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As some network and FUSE file systems. No lock that would outlive its process takes its place."""

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", flock)
    with (
        pytest.raises(
            LocalFilesError,
            match=r"its file system has no locks .*Next: set HOSTING_RUNTIME_DIR to a "
            r"directory on a local disk",
        ),
        local_files.lock(Scope("scope"), "it", 1),
    ):
        pytest.fail("it was locked")


def test_a_read_only_directory_is_named(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mkstemp(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkstemp", mkstemp)
    message = (
        r"cannot use the file .*: Read-only file system\. Next: set HOSTING_RUNTIME_DIR to a directory that "
        r"only this user can write to"
    )
    with pytest.raises(LocalFilesError, match=message):
        local_files.write(Scope("scope"), "it", {})


def test_the_plugin_names_a_platform_where_it_cannot_work(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['fcntl'] = sys.modules['pwd'] = None; from "
        "pulumi_hosting.provider.plugin import {}; {}"
    )
    for module, call in (("servicer", "servicer.main()"), ("install", "install.install()")):
        run = subprocess.run(
            [sys.executable, "-c", code.format(module, call)], capture_output=True, text=True, check=False
        )
        assert run.returncode == 1
        last = run.stderr.splitlines()[-1]
        assert "has no POSIX file locks" in last
        assert last.endswith("Next: run it on Linux or macOS, on Windows in WSL 2")


def test_a_note_for_this_moment_is_overwritten_whole(runtime: Path) -> None:
    sizes = []
    for values in ({"a": "x" * 50}, {"a": 1}, {"a": "x" * 5000}, {"a": 2}, {"a": 3}):
        local_files.write(Scope("scope"), "it", values, survives=False)
        assert local_files.read(Scope("scope"), "it", survives=False) == values
        (path,) = runtime.iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        sizes.append(path.stat().st_size)
    assert sizes == [59, 59, 5009, 8, 8]  # a shorter one in one call, without a rest of the longer one


def test_only_a_note_that_survives_waits_for_the_disk(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    local_files.write(Scope("scope"), "it", {"a": 1}, survives=False)
    assert not synced
    local_files.write(Scope("scope"), "it", {"a": 2})
    assert len(synced) == 1


@pytest.mark.parametrize("text", ["", "\0" * 60])
def test_a_note_for_this_moment_that_lost_its_power_is_none(runtime: Path, text: str) -> None:
    local_files.write(Scope("scope"), "it", {"a": 1}, survives=False)
    (path,) = runtime.iterdir()
    path.write_text(text)
    assert local_files.read(Scope("scope"), "it", survives=False) == {}
    for damaged in ("{", text + "{"):
        path.write_text(damaged)
        with pytest.raises(LocalFilesError, match="is damaged"):
            local_files.read(Scope("scope"), "it", survives=False)
    local_files.write(Scope("scope"), "it", {"a": 2}, survives=False)
    assert local_files.read(Scope("scope"), "it", survives=False) == {"a": 2}


def test_a_note_that_is_written_in_part_is_an_error(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, data[:4], at))
    with pytest.raises(LocalFilesError, match=r"No space left on device\. Next: free some space there"):
        local_files.write(Scope("scope"), "it", {"a": 1}, survives=False)


def test_a_link_in_the_place_of_a_note_for_this_moment_is_refused(runtime: Path, tmp_path: Path) -> None:
    local_files.write(Scope("scope"), "it", {"a": 1}, survives=False)
    (path,) = runtime.iterdir()
    path.unlink()
    (tmp_path / "precious").write_text("mine")
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(LocalFilesError, match="is not a file of this user"):
        local_files.write(Scope("scope"), "it", {"a": 2}, survives=False)
    assert (tmp_path / "precious").read_text() == "mine"
