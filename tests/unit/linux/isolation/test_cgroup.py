"""Files of a control group, written and read. Real ones are in tests/system."""

from pathlib import Path

import pytest

from mcpwrap.linux.isolation import cgroup
from mcpwrap.linux.isolation.cgroup import CgroupLimits, Leaf

LIMITS = CgroupLimits(memory_bytes=1024, tasks=5, cpu_percent=0)


def made(parent: Path, **text_by_file: str) -> Leaf:
    """Return a leaf in an ordinary folder: files keep the text that is written to them."""
    leaf = Leaf(parent, "s1")
    leaf.make()
    for file, text in text_by_file.items():
        (parent / "s1" / file).write_text(text)
    return leaf


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("cpu_percent", "cpu"),
    [
        (0, {}),  # no limit: the file is not written
        (1, {"cpu.max": "1000 100000"}),  # the least that the kernel accepts
        (150, {"cpu.max": "150000 100000"}),
    ],
)
def test_a_session_has_its_limits(tmp_path: Path, cpu_percent: int, cpu: dict[str, str]) -> None:
    leaf = made(tmp_path)
    (tmp_path / "s1" / "memory.swap.max").write_text("max")
    leaf.limit(CgroupLimits(memory_bytes=1024, tasks=5, cpu_percent=cpu_percent))
    assert written(tmp_path / "s1") == cpu | {
        "memory.max": "1024",
        "memory.oom.group": "1",
        "pids.max": "5",
        "memory.swap.max": "0",  # otherwise it would continue in swap
    }


def test_a_kernel_that_does_not_account_for_swap_has_no_file_for_it(tmp_path: Path) -> None:
    made(tmp_path).limit(LIMITS)
    assert "memory.swap.max" not in written(tmp_path / "s1")


@pytest.mark.parametrize("file", ["memory.max", "memory.oom.group", "pids.max"])
def test_a_limit_that_cannot_be_set_is_an_error(tmp_path: Path, file: str) -> None:
    leaf = made(tmp_path)
    (tmp_path / "s1" / file).mkdir()
    with pytest.raises(IsADirectoryError):
        leaf.limit(LIMITS)


@pytest.mark.parametrize(
    ("files", "tasks"),
    [
        ({}, 0),  # it was removed
        ({"cgroup.threads": ""}, 0),
        ({"cgroup.threads": "12\n13\n"}, 2),
        ({"tasks": "12\n"}, 1),  # v1
        ({"cgroup.threads": "12\n", "tasks": ""}, 1),
    ],
)
def test_threads_are_counted(tmp_path: Path, files: dict[str, str], tasks: int) -> None:
    assert made(tmp_path, **files).tasks() == tasks


@pytest.mark.parametrize(
    ("file", "text", "was"),
    [
        ("pids.events", "max 0\n", (False, False)),
        ("pids.events", "max 3\n", (True, False)),
        ("pids.events", "", (False, False)),
        ("memory.events", "low 1\noom 2\noom_kill 0\n", (False, False)),  # memory was reclaimed
        ("memory.events", "low 0\noom 1\noom_kill 1\n", (False, True)),
        ("other", "max 3\noom_kill 1\n", (False, False)),
    ],
)
def test_refusals_and_kills_of_the_kernel_are_seen(
    tmp_path: Path, file: str, text: str, was: tuple[bool, bool]
) -> None:
    leaf = made(tmp_path, **{file: text})
    assert (leaf.was_refused_tasks(), leaf.was_killed_for_memory()) == was


def test_controllers_that_were_not_enabled_are_not_relied_on(tmp_path: Path) -> None:
    assert not cgroup.delegate(tmp_path / "gone")
    control = tmp_path / "cgroup.subtree_control"
    control.mkdir()
    assert not cgroup.delegate(tmp_path)
    control.rmdir()
    assert not cgroup.delegate(tmp_path)  # an ordinary file keeps the `+`, the kernel's does not
    assert control.read_text() == "+cpu +memory +pids"


@pytest.mark.parametrize(
    ("of_process", "expected"),
    [
        ("0::/system.slice/a.service/supervisor\n", 4),
        ("0::/system.slice/a.service\n", 0),  # not yet in its own cgroup
        ("7:memory:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n", 5),
        ("1:name=systemd:/system.slice/a.service\n", 0),
        ("", 0),
    ],
)
def test_kills_for_memory_are_counted_in_the_whole_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_process: str, expected: int
) -> None:
    for tree, file, text in (
        ("unified", "memory.events", "oom 9\noom_kill 4\n"),
        ("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"),
    ):
        folder = tmp_path / tree / "system.slice/a.service"
        folder.mkdir(parents=True)
        (folder / file).write_text(text)
    own = tmp_path / "cgroup"
    own.write_text(of_process)
    monkeypatch.setattr(cgroup, "_V2", tmp_path / "unified")
    monkeypatch.setattr(cgroup, "_V1_MEMORY", tmp_path / "memory")
    monkeypatch.setattr(cgroup, "Path", lambda _: own)
    assert cgroup.kills_for_memory() == expected


@pytest.mark.parametrize(
    ("files", "file_memory_bytes"),
    [
        ({}, 0),  # it was removed, or has no memory controller
        ({"memory.stat": "anon 5\n"}, 0),
        ({"memory.stat": "anon 5\nshmem 4096\n"}, 4096),
    ],
)
def test_files_in_memory_are_counted(
    tmp_path: Path, files: dict[str, str], file_memory_bytes: int
) -> None:
    assert made(tmp_path, **files).file_memory_bytes() == file_memory_bytes


def test_a_label_can_be_read_back(tmp_path: Path) -> None:
    leaf = made(tmp_path, **{"cgroup.procs": ""})
    assert leaf.labels() == []
    leaf.label("agent-1000-1700000000")
    assert leaf.labels() == ["agent-1000-1700000000"]


def test_a_group_is_made_once_and_readable_by_every_account(tmp_path: Path) -> None:
    leaf = made(tmp_path)
    assert (tmp_path / "s1").stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileExistsError):
        leaf.make()


def test_a_removed_group_has_ended(tmp_path: Path) -> None:
    Leaf(tmp_path, "s1").end()
    assert list(tmp_path.iterdir()) == []
