"""AppArmor profile of `mcpwrap run`: where it is missing, and its text for each path."""

import errno
import re
from pathlib import Path

import pytest

from mcpwrap.as_agent.run import session
from mcpwrap.as_agent.run.sandbox import userns_profile
from mcpwrap.as_agent.run.sandbox.launch import Stage, StageError
from mcpwrap.as_agent.run.sandbox.layers import Network, SandboxLayer
from mcpwrap.as_agent.run.session import MissingLayerError, RunOptions
from tests.project.imports import TOP

OPTIONS = RunOptions(
    command=("x",),
    name=None,
    policy=None,
    inherit=(),
    to_read=(),
    to_write=(),
    network=Network.NOTHING,
    may_be_degraded=False,
)


@pytest.mark.parametrize(
    ("restricted", "label", "is_missing"),
    [
        ("1\n", "unconfined\n", True),
        ("0\n", "unconfined\n", False),  # Debian, and Ubuntu with the sysctl set to 0
        (None, "unconfined\n", False),  # a kernel without Ubuntu's patch
        ("1\n", "mcpwrap-run (unconfined)\n", False),  # so the kernel refuses for another reason
        ("1\n", "/home/a/venv/bin/mcpwrap (unconfined)\n", False),
        ("1\n", None, False),  # without AppArmor
    ],
)
def test_it_is_missing_where_it_is_required_and_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    restricted: str | None,
    label: str | None,
    is_missing: bool,
) -> None:
    for name, text in (("_RESTRICTED", restricted), ("_LABEL", label)):
        file = tmp_path / name
        if text is not None:
            file.write_text(text)
        monkeypatch.setattr(userns_profile, name, file)
    assert userns_profile.is_missing() == is_missing


@pytest.mark.parametrize(
    ("program", "attached", "file"),
    [
        ("/usr/bin/mcpwrap", "/usr/bin/mcpwrap", "usr.bin.mcpwrap"),
        ("/home/a b/venv/bin/mcpwrap", "/home/a b/venv/bin/mcpwrap", "home.a.b.venv.bin.mcpwrap"),
        ("/opt/{x}*[y]?", r"/opt/\{x\}\*\[y\]\?", "opt..x...y.."),  # no pattern
    ],
)
def test_it_is_attached_to_one_path(program: str, attached: str, file: str) -> None:
    assert userns_profile.profile(program)[-3] == f'"{attached}" flags=(unconfined) {{'
    assert userns_profile.file_of(program) == f"/etc/apparmor.d/{file}"


def test_the_shipped_profile_says_the_same() -> None:
    """But for its name, and the place for an administrator's own lines."""
    shipped = (TOP / "packaging/apparmor/mcpwrap-run").read_text()
    lines = [
        line for line in shipped.splitlines() if line and "#" not in line and "local" not in line
    ]
    text = "\n".join(lines).replace("profile mcpwrap-run /usr/bin/mcpwrap", '"/usr/bin/mcpwrap"')
    assert text == "\n".join(filter(None, userns_profile.profile("/usr/bin/mcpwrap")))


def test_the_path_has_no_links(tmp_path: Path) -> None:
    (tmp_path / "mcpwrap").touch()
    (tmp_path / "link").symlink_to("mcpwrap")
    assert userns_profile.own_program(str(tmp_path / "link")) == str(tmp_path / "mcpwrap")


@pytest.mark.parametrize(
    ("layer", "is_missing", "code"),
    [
        (SandboxLayer.NAMESPACES, True, "E-RUN-APPARMOR"),
        (SandboxLayer.NAMESPACES, False, "E-RUN-MISSING-LAYER"),
        (SandboxLayer.LANDLOCK, True, "E-RUN-MISSING-LAYER"),
    ],
)
def test_the_error_has_the_profile(
    monkeypatch: pytest.MonkeyPatch, layer: SandboxLayer, *, is_missing: bool, code: str
) -> None:
    monkeypatch.setattr(userns_profile, "is_missing", lambda: is_missing)
    error = StageError(Stage(layer), errno.EPERM)
    with pytest.raises(MissingLayerError) as found:
        session.do_without(layer, frozenset(), error, OPTIONS)
    assert found.value.code == code
    pattern = r'\n  "/.*" flags=\(unconfined\) \{\n    userns,\n  \}\n'
    has_profile = bool(re.search(pattern, str(found.value)))
    assert has_profile == (code == "E-RUN-APPARMOR")
    assert "`--allow-degraded`" in found.value.fix
