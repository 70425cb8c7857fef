"""Root's files: replaced whole, and read only if no other account can write them."""

import os
import re
import resource
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpwrap.errors import McpwrapError, PartialWriteError
from mcpwrap.linux import root_files


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    for text in ("first, and longer", "é"):
        root_files.replace(str(path), text)
        assert path.read_bytes() == text.encode()
    assert names_in(path.parent) == ["file"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o644), (0o000, 0o600)])
def test_a_file_has_its_mode_whatever_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        root_files.replace(str(tmp_path / "file"), "", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o7777 == mode


def test_a_reader_keeps_the_file_it_has_open(tmp_path: Path) -> None:
    path = tmp_path / "file"
    root_files.replace(str(path), "old")
    with path.open() as reader:
        root_files.replace(str(path), "new")
        assert reader.read() == "old"


def test_a_temporary_file_of_a_crash_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".file.new").write_text("half of a text that is longer")
    root_files.replace(str(tmp_path / "file"), "text")
    assert (tmp_path / "file").read_text() == "text"
    assert names_in(tmp_path) == ["file"]


def test_a_link_in_the_way_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("safe")
    (tmp_path / ".file.new").symlink_to("victim")
    with pytest.raises(OSError, match="symbolic links"):
        root_files.replace(str(tmp_path / "file"), "text")
    assert (tmp_path / "victim").read_text() == "safe"


def test_a_file_is_utf_8_whatever_the_locale_of_the_operator(tmp_path: Path) -> None:
    code = (
        "import sys; from mcpwrap.linux import root_files;"
        "root_files.replace(sys.argv[1], '\\u00e9')"
    )
    # As in any locale without UTF-8. Python assumes UTF-8 too often for a real one to show it.
    ascii_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(command, env=ascii_locale, capture_output=True, cwd=Path.cwd())
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "file").read_bytes() == "é".encode()


def test_a_link_replaces_any_file(tmp_path: Path) -> None:
    link = tmp_path / "bin" / "link"
    for target in ("/a", "/b"):
        root_files.replace_link(str(link), target)
        assert str(link.readlink()) == target
    link.unlink()
    link.write_text("a file")
    (link.parent / ".link.new").symlink_to("left by a crash")
    root_files.replace_link(str(link), "/c")
    assert str(link.readlink()) == "/c"
    assert names_in(link.parent) == ["link"]


@pytest.mark.parametrize(
    ("folder", "others", "left"),
    [
        ("mcpwrap@git.service.d", [], []),
        ("mcpwrap@git.service.d", ["20-mine.conf"], ["mcpwrap@git.service.d"]),  # operator's file
        ("servers", [], ["servers"]),
        ("sysusers.d", [], ["sysusers.d"]),  # a folder of the system, though it ends in .d
    ],
)
def test_a_drop_in_folder_goes_with_its_last_file(
    tmp_path: Path, folder: str, others: list[str], left: list[str]
) -> None:
    (tmp_path / folder).mkdir()
    for name in ("10-mcpwrap.conf", *others):
        (tmp_path / folder / name).touch()
    for _ in range(2):  # the second time has no effect
        root_files.remove(str(tmp_path / folder / "10-mcpwrap.conf"))
        assert names_in(tmp_path) == left
    assert [name for kept in left for name in names_in(tmp_path / kept)] == others


def test_removing_a_link_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to("target")
    root_files.remove(str(tmp_path / "link"))
    assert names_in(tmp_path) == ["target"]


@pytest.mark.parametrize("max_bytes", [0, 5])
def test_a_file_of_roots_is_read_up_to_one_byte_too_many(max_bytes: int) -> None:
    text = Path("/etc/passwd").read_bytes()  # root's own on every machine
    assert root_files.read_roots_own("/etc/passwd", max_bytes=max_bytes) == text[: max_bytes + 1]
    assert root_files.read_roots_own("/etc/passwd", max_bytes=len(text)) == text


def writable_by(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.touch()
        path.chmod(mode)

    return make


@pytest.mark.parametrize(
    "make",
    [
        writable_by(0o664),
        writable_by(0o646),
        writable_by(0o666),
        Path.mkdir,
        os.mkfifo,  # the reader does not wait for a writer
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to("nowhere"),
    ],
)
def test_a_file_that_others_can_write_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "config.toml"
    make(path)
    with pytest.raises(McpwrapError) as caught:
        root_files.read_roots_own(str(path), max_bytes=9)
    assert caught.value.where == str(path)


def test_a_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.touch(mode=0o644)
    if os.geteuid() == 0:
        os.chown(path, 1000, 1000)
    with pytest.raises(McpwrapError, match="accounts other than root"):
        root_files.read_roots_own(str(path), max_bytes=9)


def test_a_missing_file_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        root_files.read_roots_own(str(tmp_path / "config.toml"), max_bytes=9)


ACL_VERSION, UNDEFINED = 2, 0xFFFFFFFF
USER_OBJ, USER, GROUP_OBJ, MASK, OTHER = 1, 2, 4, 16, 32


def let(uid: int, rights: int, mask: int) -> Callable[[Path], None]:
    """Return a function that gives an account rights by an access control list. Source: acl(5)."""
    entries = [(USER_OBJ, 7, UNDEFINED), (USER, rights, uid), (GROUP_OBJ, 5, UNDEFINED)]
    entries += [(MASK, mask, UNDEFINED), (OTHER, 5, UNDEFINED)]
    value = struct.pack("<I", ACL_VERSION) + b"".join(struct.pack("<HHI", *e) for e in entries)

    def make(path: Path) -> None:
        os.setxattr(path, "system.posix_acl_access", value)

    return make


def of_another(path: Path) -> None:
    os.chown(path, 1000, 1000)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda path: path.chmod(0o777), "mode 0777"),
        (lambda path: path.chmod(0o775), "mode 0775"),
        (lambda path: path.chmod(0o1777), "mode 1777"),  # others can create files in it
        (of_another, "mode 0755, owner 1000"),
        (let(1000, 7, 7), "mode 0775"),  # the mode shows the mask as group bits
    ],
)
@pytest.mark.parametrize("read", [root_files.read_roots_own, root_files.read_roots_secret])
def test_a_folder_in_which_others_can_replace_a_file_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], why: str, read: Callable[[str], bytes]
) -> None:
    folder = tmp_path / "conf.d"
    folder.mkdir(mode=0o755)
    root_files.replace(str(folder / "file"), "text", mode=0o600)
    assert read(str(folder / "file")) == b"text"  # the twin
    spoil(folder)
    with pytest.raises(McpwrapError, match=re.escape(f"({why})")) as caught:
        read(str(folder / "file"))
    assert caught.value.where == str(folder)


@pytest.mark.parametrize(
    ("spoil", "is_refused"),
    [
        (lambda path: path.chmod(0o777), True),
        (of_another, True),
        (lambda path: path.chmod(0o1777), False),  # like /tmp: root's names stay root's
        (let(1000, 7, 5), False),  # the mask allows no writing
    ],
)
def test_each_folder_above_counts(
    tmp_path: Path, spoil: Callable[[Path], None], *, is_refused: bool
) -> None:
    folder = tmp_path / "above/below"
    folder.mkdir(parents=True)
    spoil(folder.parent)
    if is_refused:
        with pytest.raises(McpwrapError, match="accounts other than root") as caught:
            root_files.expect_roots_folder(str(folder))
        assert caught.value.where == str(folder.parent)
    else:
        root_files.expect_roots_folder(str(folder))


@pytest.mark.parametrize(
    ("target", "is_refused"),
    [("good/in", False), ("../{name}/good/in", False), ("hop", True), ("open/in", True)],
)
def test_a_link_is_checked_with_its_target_and_all_folders_on_the_path(
    tmp_path: Path, target: str, *, is_refused: bool
) -> None:
    for folder in ("good/in", "open/in", "open/hops"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "open/hops/on").symlink_to(tmp_path / "good/in")
    (tmp_path / "hop").symlink_to("open/hops/on")  # others can change its target
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(target.format(name=tmp_path.name))
    if is_refused:
        with pytest.raises(McpwrapError, match="accounts other than root"):
            root_files.expect_roots_folder(str(tmp_path / "link"))
    else:
        root_files.expect_roots_folder(str(tmp_path / "link"))


def test_a_system_file_may_be_in_a_folder_that_others_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    root_files.replace(str(tmp_path / "npmrc"), "text")
    assert root_files.read_of_root(str(tmp_path / "npmrc")) == b"text"
    (tmp_path / "npmrc").chmod(0o666)
    with pytest.raises(McpwrapError, match="mode 0666"):
        root_files.read_of_root(str(tmp_path / "npmrc"))


def test_loops_of_links_and_links_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "theirs").symlink_to("/")
    os.chown(tmp_path / "theirs", 1000, 1000, follow_symlinks=False)
    for name in ("circle", "theirs"):
        with pytest.raises(McpwrapError, match="is a link"):
            root_files.expect_roots_folder(str(tmp_path / name))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_secret_of_roots_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "store.json"
    root_files.replace(str(path), "text", mode=0o600)
    assert root_files.read_roots_secret(str(path)) == b"text"
    path.chmod(mode)
    for read in (root_files.read_roots_secret, root_files.expect_roots_secret):
        why = rf"accounts other than root can use it \(mode {mode:04o}\)"
        with pytest.raises(McpwrapError, match=why):
            read(str(path))


def test_a_file_of_any_account_is_read_up_to_a_byte_too_many(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    path.chmod(0o666)
    assert root_files.read_anybodys(str(path), max_bytes=5) == b"12345"
    assert root_files.read_anybodys(str(path), max_bytes=3) == b"1234"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is not a plain file"),  # the reader does not wait for a writer
        (lambda path: path.mkdir(), "is not a plain file"),
        (lambda path: path.symlink_to("/etc/hostname"), "cannot be opened: Too many levels"),
        (lambda path: path.symlink_to("/dev/zero"), "cannot be opened: Too many levels"),
        (lambda path: None, "no such file"),
    ],
    ids=["fifo", "folder", "link", "link to a device", "nothing"],
)
def test_only_a_plain_file_is_read(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    path = tmp_path / "odd\x1b\u202e"
    make(path)
    with pytest.raises(McpwrapError, match=f"{why}.*; nothing was changed|{why}; nothing") as error:
        root_files.read_anybodys(str(path), max_bytes=5)
    assert r"odd\x1b\u202e'" in error.value.where


def test_a_device_is_not_read() -> None:
    with pytest.raises(McpwrapError, match="is not a plain file"):
        root_files.read_anybodys("/dev/zero", max_bytes=5)


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """Let the kernel refuse further writes to a file, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("sizes", [(99,), (9, 99), (99, 9), (9, 9, 99)])
def test_where_one_of_several_cannot_be_written_none_is(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    for number in range(len(sizes)):
        (tmp_path / str(number)).write_text("before")
    wanted = [
        root_files.NewFile(path=str(tmp_path / str(number)), text="x" * size)
        for number, size in enumerate(sizes)
    ]
    with no_file_over(64), pytest.raises(OSError, match="File too large") as caught:
        root_files.replace_all(wanted)
    assert caught.value.filename == str(tmp_path / str(sizes.index(99)))
    assert names_in(tmp_path) == [str(number) for number in range(len(sizes))]  # none temporary
    assert {path.read_text() for path in tmp_path.iterdir()} == {"before"}
    root_files.replace_all(wanted)  # the twin
    assert [len((tmp_path / str(number)).read_text()) for number in range(len(sizes))] == [*sizes]


def test_a_failed_rename_after_another_is_a_partial_write(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    wanted = [
        root_files.NewFile(path=str(tmp_path / name), text="x") for name in ("file", "folder")
    ]
    with pytest.raises(PartialWriteError) as caught:
        root_files.replace_all(wanted)
    assert caught.value.filename == str(tmp_path / "folder")
    assert names_in(tmp_path) == ["file", "folder"]


def test_the_first_that_cannot_be_renamed_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    wanted = [
        root_files.NewFile(path=str(tmp_path / name), text="x") for name in ("folder", "file")
    ]
    with pytest.raises(OSError, match="directory") as caught:
        root_files.replace_all(wanted)
    assert not isinstance(caught.value, PartialWriteError)
    assert names_in(tmp_path) == ["folder"]
