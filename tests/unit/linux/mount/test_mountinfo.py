"""Parsing of the mount table."""

import os
from pathlib import Path

import pytest

from mcpwrap.linux.mount import mountinfo
from mcpwrap.linux.mount.mountinfo import Mount, parsed

TABLE = r"""
36 35 98:0 /alice/my\040project /home/alice/my\040project rw,nosuid shared:5 - ext4 /dev/vda rw
37 36 98:0 /alice/p\134x//deleted /home/alice/é rw - ext4 /dev/vda rw,errors=continue
38 35 0:35 / /srv rw,noatime master:1 propagate_from:2 - fuse.sshfs a-b rw
"""


def test_each_line_is_a_mount() -> None:
    assert list(parsed(TABLE.strip())) == [
        Mount(36, "/home/alice/my project", "/alice/my project", "ext4"),
        Mount(37, "/home/alice/é", "/alice/p\\x//deleted", "ext4"),
        Mount(38, "/srv", "/", "fuse.sshfs"),  # the number of fields before the - varies
    ]


def test_the_table_of_this_machine_has_the_mounts_at_and_below_a_path() -> None:
    assert mountinfo.at_or_below(["/proc"])["/proc"].filesystem == "proc"
    assert mountinfo.at_or_below(["/pro"]) == {}


def test_an_open_file_is_on_a_file_system() -> None:
    fd = os.open("/proc/self", os.O_RDONLY)
    try:
        assert mountinfo.filesystem_of(fd) == "proc"
    finally:
        os.close(fd)


def test_a_file_on_an_invisible_mount_is_on_an_unnamed_file_system() -> None:
    read_fd, write_fd = os.pipe()
    try:
        assert mountinfo.filesystem_of(read_fd) == "this file system"
    finally:
        os.close(read_fd)
        os.close(write_fd)
    assert Path(mountinfo.PATH).exists()


@pytest.mark.parametrize("name", ["a\rb", "a\x0bb", "a\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_name_ends_no_line(name: str) -> None:
    """The kernel escapes a newline, and no other character that some programs take for one."""
    text = f"36 35 98:0 /{name} /m/{name} rw - ext4 /dev/vda rw\n"
    assert list(parsed(text)) == [Mount(36, f"/m/{name}", f"/{name}", "ext4")]
