"""Environment of a server: built from an empty one."""

from pathlib import Path

import pytest

from mcpwrap.as_agent.run import environment
from mcpwrap.errors import UsageError

AGENTS = {"TOKEN": "x", "SECRET": "y", "TZ": "UTC", "HOME": "/home/alice", "LD_PRELOAD": "z"}


def test_it_has_the_inherited_variables_and_few_others() -> None:
    given = environment.inherited(["TOKEN", "NOT_SET"], AGENTS)
    assert given == {"TOKEN": "x", "TZ": "UTC"}
    env = environment.variables(
        account="alice", home="/state", tmp="/tmp/t", path="/usr/bin", inherited=given
    )
    assert env == {
        "PATH": "/usr/bin",
        "HOME": "/state",
        "USER": "alice",
        "LOGNAME": "alice",
        "TMPDIR": "/tmp/t",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TOKEN": "x",
        "npm_config_update_notifier": "false",
    }
    assert environment.offline(env).items() >= {
        ("npm_config_offline", "true"),
        ("UV_OFFLINE", "1"),
    }


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "NODE_OPTIONS", "HTTPS_PROXY", "A B", ""])
def test_a_name_that_decides_which_code_runs_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"--inherit {name}: "):
        environment.inherited([name], AGENTS)


@pytest.mark.parametrize(
    ("agents", "program", "path"),
    [
        ("", None, "/usr/local/bin:/usr/bin:/bin"),
        ("/home/a/.nvm/bin:/usr/bin", None, "/home/a/.nvm/bin:/usr/bin:/usr/local/bin:/bin"),
        (".::bin:/usr/bin", None, "/usr/bin:/usr/local/bin:/bin"),  # never the working folder
        ("/usr/bin", "/opt/node/bin/npx", "/usr/bin:/opt/node/bin:/usr/local/bin:/bin"),
    ],
)
def test_the_search_path(agents: str, program: str | None, path: str) -> None:
    assert environment.search_path(agents, Path(program) if program else None) == path


def test_a_home_in_a_folder_of_the_system_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("opt/tool/bin", "opt/people/alice/keys", "opt/people/shared", "etc"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(environment, "SYSTEM", (f"{tmp_path}/opt", f"{tmp_path}/etc"))

    def given(home: str) -> set[str]:
        return {path.removeprefix(f"{tmp_path}/") for path in environment.system(tmp_path / home)}

    assert given("opt/people/alice") == {"opt/tool", "opt/people/shared", "etc"}
    assert given("opt") == {"etc"}
    assert given("home/alice") == {"opt", "etc"}  # the twin
