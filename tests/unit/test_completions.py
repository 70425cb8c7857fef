"""Completions for shells: the tables have the command line's tree, and bash reads root's files."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mcpwrap.cli.main import cli
from mcpwrap.core.secrets import at_rest
from mcpwrap.core.wire import server_files
from mcpwrap.core.wire.secret_index import SecretIndex, SecretVersion
from mcpwrap.core.wire.server_files import ServerSpec

PROGRAM = Path(__file__).parents[2] / "packaging/completions.py"
FILES = runpy.run_path(str(PROGRAM), run_name="completions")["files"]("site-functions")
BASH = FILES["bash-completion/completions/mcpwrap"]
ZSH = FILES["zsh/site-functions/_mcpwrap"]
FISH = FILES["fish/vendor_completions.d/mcpwrap.fish"]
STATE = "/var/lib/mcpwrap"
HIDDEN = ("--by", "--display", "--sudo-gid", "--sudo-uid")


def visible(command: click.Command, words: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Return the words of each command, its options, and the commands below it."""
    below = command.commands if isinstance(command, click.Group) else {}
    shown = {name: found for name, found in below.items() if not found.hidden}
    options = [
        spelling
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for spelling in parameter.opts
    ]
    yield words, [*options, "-h", "--help"], list(shown)
    for name, found in shown.items():
        yield from visible(found, f"{words} {name}")


COMMANDS = list(visible(cli, "mcpwrap"))


def run(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-uc", script, "bash", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def lists_of_bash(words: str) -> tuple[list[str], list[str]]:
    """Return the options and the commands that bash has for these words."""
    script = f'{BASH}\n_mcpwrap_command "$1"; printf "%s\\n" "$options" - "$commands"'
    found = run(script, words)
    at = found.index("-")
    return found[:at], found[at + 1 :]


def of_fish(words: str) -> str:
    found = re.search(rf"^ +case '{words}'\n((?:            set .*\n)*)", FISH, re.MULTILINE)
    assert found
    return found[1]


def of_zsh(words: str) -> str:
    name = words.replace(" ", "__").replace("-", "_")
    found = re.search(rf"^__{name}\(\) {{\n(.*?)^}}\n", ZSH, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize(("words", "options", "below"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_each_shell_has_the_options_and_the_commands(
    words: str, options: list[str], below: list[str]
) -> None:
    in_bash, commands = lists_of_bash(words)
    assert set(in_bash) - {"--next"} == set(options)
    assert sorted(commands) == sorted(below)
    fish, zsh = of_fish(words), of_zsh(words)
    for option in options:
        assert f"'{option}\t" in fish
        assert re.search(rf"[)*]{option}[=+]?\[", zsh)
    for command in below:
        assert f"'{command}\t" in fish
        assert re.search(rf"^        '{command}:", zsh, re.MULTILINE)


@pytest.mark.parametrize("option", HIDDEN)
def test_what_help_hides_is_in_no_shell(option: str) -> None:
    assert not [text for text in FILES.values() if re.search(rf"[ ')*]{option}[\t\[: ']", text)]


def test_the_option_that_click_does_not_know_is_there() -> None:
    assert "--next" in lists_of_bash("mcpwrap tools diff")[0]
    assert "'--next\t" in of_fish("mcpwrap tools diff")
    assert "--next[" in of_zsh("mcpwrap tools diff")


def test_zsh_and_fish_show_what_a_command_does() -> None:
    assert "'secret:Set, list and remove the secrets of servers" in of_zsh("mcpwrap")
    assert "'unwrap\tRestore agents\\' files as they were" in of_fish("mcpwrap")


def test_bash_can_parse_it() -> None:
    for name in ("mcpwrap", "mcpwrap-connect"):
        text = FILES[f"bash-completion/completions/{name}"]
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a folder with the names of three servers, and the secrets of one."""
    for folder in ("bin", "servers"):
        (tmp_path / folder).mkdir()
    for name in ("git", "git_hub-2", "time", "Bad", "x;id", "$(id)", "\x1b]0;x\x07", "a b", "-x"):
        (tmp_path / f"bin/mcp-wrapper-{name}").symlink_to("/usr/bin/mcpwrap-connect")
    spec = ServerSpec(
        name="git", command="/x", args=('"secrets": [', "]"), cwd="", egress_env={}, env={},
        inherits=(), secrets=("DECLARED", "TOKEN", "MCPWRAP_OAUTH_KEY"), secret_files=(),
        state=False, allow_degraded=False, idle_exit_s=0, sessions=1, memory_bytes=1, tasks=1,
        cpu_percent=0,
    )  # fmt: skip
    (tmp_path / "servers/git.json").write_text(server_files.encode(spec))
    index = SecretIndex()
    for name, key, is_set in [
        ("git", "TOKEN", True),
        ("git", "OTHER_2", True),
        ("git", "GONE", False),
        ("time", "NOT_OF_GIT", True),
    ]:
        setting = SecretVersion(version=1, is_set=is_set, changed_at="2026-11-24T00:00:00Z")
        index = index.with_one(name, key, setting)
    (tmp_path / "secrets.json").write_text(at_rest.encode(index))
    return tmp_path


PRESS = """
compopt() { COMPREPLY=("<compopt $*>"); }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
function=_mcpwrap
[[ $1 == mcpwrap-connect ]] && function=_mcpwrap_connect
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" ""
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def pressed(state: Path, words: str, options: str = "") -> list[str]:
    """Return what bash offers when TAB is pressed after these words, split at single spaces."""
    script = f"{options}\n{BASH.replace(STATE, str(state))}\n{PRESS}"
    return sorted(run(script, *words.split(" ")))


FILE_NAMES = ["-o", "<compopt", "default>"]
SECRETS = ["DECLARED", "OTHER_2", "TOKEN"]
SERVERS = ["git", "git_hub-2", "time"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mcpwrap sec", ["secret"]),
        ("mcpwrap secret re", ["recovery-key", "rekey", "remove"]),
        ("mcpwrap nosuch ", []),
        ("mcpwrap status --", ["--help", "--json"]),
        ("mcpwrap status ", SERVERS),
        ("mcpwrap status --json g", ["git", "git_hub-2"]),
        ("mcpwrap status git ", []),  # it has one argument
        ("mcpwrap status -- ", SERVERS),
        ("mcpwrap status -- --", []),  # after `--` there is no option
        ("mcpwrap-connect t", ["time"]),
        ("mcpwrap-connect -", ["--help", "-h"]),
        ("mcpwrap secret set git ", SECRETS),
        ("mcpwrap secret remove git O", ["OTHER_2"]),
        ("mcpwrap secret set time ", ["NOT_OF_GIT"]),
        ("mcpwrap secret set nosuch ", []),
        ("mcpwrap secret set ../servers/git ", []),
        ("mcpwrap secret set git TOKEN ", []),
        ("mcpwrap audit show --server t", ["time"]),
        ("mcpwrap audit show --server = t", ["time"]),  # bash splits words at `=`
        ("mcpwrap audit show --server =", SERVERS),
        ("mcpwrap audit show --server=t", ["--server=time"]),  # unless COMP_WORDBREAKS has none
        ("mcpwrap audit show --since ", []),
        ("mcpwrap approvals --user sho", ["show"]),
        ("mcpwrap convert --client cl", ["claude-code", "claude-desktop", "cline"]),
        ("mcpwrap wrap codex cop", ["copilot"]),  # the last argument may be repeated
        ("mcpwrap schema ", ["config", "policy"]),
        ("mcpwrap policy default disable force-push-", ["force-push-by-tool"]),
        ("mcpwrap check a.toml ", FILE_NAMES),
        ("mcpwrap run --policy ", FILE_NAMES),
        ("mcpwrap run --name x npx --", FILE_NAMES),  # an option of npx: not ours to complete
        ("mcpwrap tools diff git --next npx -", FILE_NAMES),
    ],
)
def test_what_bash_offers(state: Path, words: str, offered: list[str]) -> None:
    assert pressed(state, words) == offered


@pytest.mark.parametrize(
    "options", ["set -f", "shopt -s failglob", "shopt -s nullglob", "IFS=e", "LC_ALL=C"]
)
def test_options_of_a_shell_change_nothing(state: Path, options: str) -> None:
    assert pressed(state, "mcpwrap status ", options) == SERVERS
    assert pressed(state, "mcpwrap secret set git ", options) == SECRETS
    for link in (state / "bin").iterdir():
        link.unlink()
    assert pressed(state, "mcpwrap status ", options) == []


HOSTILE = '"git":{"$(touch CANARY)":{"version":1,"is_set":true,"changed_at":""},"\\u001b]0;x":{}}'


@pytest.mark.parametrize(
    ("index", "offered"),
    [
        (b"", []),
        (b"{}", []),
        (b"\0\0\0", []),
        (b'{"format":1,"by_server":{"git":{"TOKEN":{"version":1,"is_set":tr', []),  # not whole
        (f'{{"format":1,"by_server":{{{HOSTILE}}}}}'.encode(), []),
        (f'{{"format":1,"by_server":{{{HOSTILE.replace("$", "A")}}}}}'.encode(), []),
        (b'{"format":1,"by_server":{"git":{"`id`":{"version":1,"is_set":true,"x":""}}}}', []),
        (b'{"format":1,"by_server":{"git":{"\x1b[2J":{"version":1,"is_set":true,"x":""}}}}', []),
        (b'{"format":1,"by_server":{"git":{"A":{"version":1,"is_set":true,"x":""}}}}', ["A"]),
    ],
)
def test_a_damaged_index_gives_no_name(state: Path, index: bytes, offered: list[str]) -> None:
    (state / "servers/git.json").unlink()
    (state / "secrets.json").write_bytes(index.replace(b"CANARY", bytes(state / "canary")))
    assert pressed(state, "mcpwrap secret set git ") == offered
    assert not (state / "canary").exists()


def test_a_long_file_takes_no_seconds(state: Path) -> None:
    """Removal of a pattern that begins with `*` took 19 s for 60 kB."""
    begun = (state / "secrets.json").read_text().removesuffix("}}\n")
    more = "".join(
        f',"s{n}":{{"TOKEN":{{"version":1,"is_set":true,"changed_at":"2026"}}}}'
        for n in range(9999)
    )
    (state / "secrets.json").write_text(f"{begun}{more}}}}}\n")
    assert pressed(state, "mcpwrap secret set s9998 ") == ["TOKEN"]
    padded = (state / "servers/git.json").read_text().replace("/x", "x" * 500_000)
    (state / "servers/git.json").write_text(padded)
    assert pressed(state, "mcpwrap secret set git ") == SECRETS


def test_the_program_writes_the_same_files_below_a_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, check=True
    )
    written = {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.glob("*/*/*")}
    assert written == FILES
    assert done.stdout.split() == [str(tmp_path / name) for name in FILES]


def test_the_package_has_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script adds to it
    stage = runpy.run_path(str(PROGRAM.with_name("stage.py")), run_name="stage")
    stage["put_completions"](tmp_path, "site-functions")
    staged = {str(p.relative_to(tmp_path / "usr/share")): p for p in tmp_path.glob("usr/*/*/*/*")}
    assert {name: path.read_text() for name, path in staged.items()} == FILES
