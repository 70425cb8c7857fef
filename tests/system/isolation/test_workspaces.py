"""An agent's folders inside a server: the listed ones, as configured, and no others."""

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.system.bed import installed
from tests.system.bed.machine import CommandFailedError, Machine
from tests.system.bed.nspawn import Profile
from tests.system.support.servers import NODE_MODULES, a_server
from tests.system.support.tiers import only_in_test_all

HOME, PROJECT = "/home/alice", "/home/alice/project"
PROBES = "tests.system.guest.workspace_probes"
REFUSED = {errno.EROFS: "OSError 30", errno.EBUSY: "OSError 16", errno.ENOENT: "OSError 2"}
READ_ONLY, BUSY, NOT_THERE = REFUSED.values()
MAKE_HOME = """
chmod 700 ~; cd
mkdir -m 700 project project/src other notes
echo 'hello from alice' > project/readme.txt
echo 'in other' > other/file; echo 'a secret' > private.txt
echo 'just a note' > notes/one.txt; echo 'another' > notes/two.txt
ln -s ~/private.txt project/link; ln -s ~/other project/folder-link
ln -s /etc/shadow project/shadow
cd project; git init -q; git config user.email alice@here; git config user.name alice
printf '#!/bin/sh\\ntrue\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
touch .envrc .mcp.json; mkdir .claude .cursor .vscode; touch .claude/settings.json
"""


def probe(name: str, *lines: str, agents: str = "['alice']", top: str = "") -> str:
    """Return the probe as server `name`, with these settings."""
    return a_server(name, "\n".join([f"agents = {agents}", *lines]), top=top)


FILES = f"""
[mcp_servers.files]
command = "/usr/bin/node"
args = ["{NODE_MODULES}/server-filesystem/dist/index.js", "{PROJECT}"]
[mcp_servers.files.mcpwrap]
agents = ["alice"]
workspace = ["{PROJECT}:rw"]
"""
RW = probe("rw", f'workspace = ["{PROJECT}:rw"]', top=f'cwd = "{PROJECT}/src"')
RO = probe("ro", f'workspace = ["{PROJECT}:ro"]')
FREE = probe("free", f'workspace = ["{PROJECT}:rw"]', "protect = false")
TOLD = probe("told", f'workspace = ["{PROJECT}:rw"]', "protect_instructions = false")
OTHER = probe("other", f'workspace = ["{HOME}/other:rw"]')
NOTHING = probe("nothing")
STANDING = FILES + RW + RO + FREE + TOLD + OTHER + NOTHING


ANOTHER = only_in_test_all("decided by the same mechanism as another row")
TWIN = only_in_test_all("mutation twin: shows that the probe notices what is missing")


@contextmanager
def with_workspaces(suite: str) -> Iterator[Machine]:
    """Boot a machine on which alice has a project, and servers that may use it in several ways."""
    with installed.booted(suite) as machine:
        for name in ("alice", "bob", "mallory"):
            machine.add_person(name, groups="mcpwrap" if name != "mallory" else "")
        machine.as_user("alice", MAKE_HOME)
        machine.configure(STANDING)
        machine.apply()
        yield machine


STAGE = with_workspaces


def tried(machine: Machine, name: str, code: str) -> object:
    """Run this in server `name`, and return the result."""
    with machine.session(name) as session:
        return session.evaluate(f"import os\n{code}")


def with_server(machine: Machine, text: str) -> str:
    machine.configure(STANDING + text)
    return machine.apply()


@pytest.fixture
def standing(machine: Machine) -> Machine:
    """Return the machine with only the standing servers."""
    if machine.read("/etc/mcpwrap/config.toml") != STANDING:
        with_server(machine, "")
    return machine


def write(path: str) -> str:
    return f"open({path!r}, 'a').write('x'); result = 'written'"


# ------------------------------------------------------------------------------ access
def test_server_filesystem_works_on_the_agent_s_own_files(machine: Machine) -> None:
    def call(tool: str, **arguments: object) -> str:
        return machine.call_tool("files", tool, arguments)

    assert call("read_text_file", path=f"{PROJECT}/readme.txt") == "hello from alice\n"
    call("write_file", path=f"{PROJECT}/new.txt", content="by a server")
    call("create_directory", path=f"{PROJECT}/made")
    seen = machine.as_user("alice", "cd project; cat new.txt; stat -c '%U:%G' new.txt made")
    assert seen.out == "by a serveralice:alice\nalice:alice\n"
    machine.as_user("alice", "cd project; echo more >> new.txt; rmdir made; rm new.txt")
    assert "denied" in call("read_text_file", path=f"{HOME}/private.txt")  # its own rule
    assert "does not exist" in call("read_text_file", path=f"{PROJECT}/link")  # ours


def test_a_server_finds_nothing_else_of_the_home(machine: Machine) -> None:
    with machine.session("rw") as session:
        listing = "import os; result = {p: os.listdir(p) for p in ('/home', '/home/alice')}"
        assert session.evaluate(listing) == {"/home": ["alice"], "/home/alice": ["project"]}
        for path in ("private.txt", "other/file", "project/../private.txt", "project/link"):
            assert session.evaluate(f"open('{HOME}/{path}')") == NOT_THERE
        assert session.evaluate(f"import os; os.listdir('{PROJECT}/folder-link')") == NOT_THERE
        assert session.evaluate(f"open('{PROJECT}/shadow')") == "OSError 13"  # as for any account
        assert session.evaluate(write("/home/alice/x")) == READ_ONLY
        assert session.evaluate(write("/home/x")) == READ_ONLY
        text = f"result = open('{PROJECT}/readme.txt').read()"  # the twin
        assert session.evaluate(text) == "hello from alice\n"
    assert machine.as_user("alice", "cat project/link").out == "a secret\n"  # the twin


def test_what_a_server_makes_has_the_mode_of_its_agent_s_own_files(machine: Machine) -> None:
    """By the agent's umask, or by root's setting; its own folders stay closed."""
    with_server(machine, probe("masked", f'workspace = ["{PROJECT}:rw"]', 'umask = "0027"'))
    home = "result = oct(os.stat(os.environ['HOME']).st_mode)[-4:]"
    make = f"import os; os.mkdir('{PROJECT}/made'); open('{PROJECT}/file', 'w'); {home}"

    def modes(name: str, umask: str) -> list[str]:
        command = f"umask {umask}; exec mcpwrap-connect {name}"
        with machine.session(name, command=command) as session:
            assert session.evaluate(make) == "0700"
        return machine.as_user(
            "alice", "cd project; stat -c %a file made; rm -r file made"
        ).out.split()

    assert modes("rw", "022") == ["644", "755"]
    assert modes("rw", "077") == ["600", "700"]  # the twin
    assert modes("rw", "777") == ["600", "700"]  # a server can use its own files
    assert modes("masked", "022") == ["640", "750"]
    assert modes("masked", "077") == ["640", "750"]


def test_a_server_starts_in_its_workspace(machine: Machine) -> None:
    assert tried(machine, "rw", "result = os.getcwd()") == f"{PROJECT}/src"


def test_files_of_others_stay_theirs(machine: Machine) -> None:
    """The swap is of two accounts; all others keep their UIDs, root among them."""
    machine.as_root(f"cd {PROJECT}; echo r > roots; chmod 644 roots; echo b > bobs; chown bob bobs")
    with machine.session("rw") as session:
        owner = f"import os; result = os.stat('{PROJECT}/{{}}').st_uid"
        assert session.evaluate(owner.format("readme.txt")) == machine.uid_of("mcpw-rw")
        assert session.evaluate(owner.format("roots")) == 0
        assert session.evaluate(owner.format("bobs")) == machine.uid_of("bob")
        assert session.evaluate(write(f"{PROJECT}/roots")) == "OSError 13"
        assert session.evaluate(write(f"{PROJECT}/readme.txt")) == "written"
    machine.as_user("alice", "cd project; rm -f roots bobs; echo 'hello from alice' > readme.txt")


def test_programs_in_it_run_and_gain_nothing(machine: Machine) -> None:
    machine.as_user("alice", "cd project; printf '#!/bin/sh\\nid -u\\n' > tool; chmod +x tool")
    uid = machine.uid_of("mcpw-rw")
    with machine.session("rw") as session:
        ran = session.call("workspace_probes", "run_a_program", PROJECT)
        assert ran == [f"{uid}\n", True, True]
        change = f"import os; os.chmod('{PROJECT}/tool', 0o4755)"
        assert session.evaluate(change) == "OSError 1"
    machine.as_user("alice", "rm project/tool")


def test_read_only_is_read_only(machine: Machine) -> None:
    path = f"{PROJECT}/src/w"
    assert tried(machine, "ro", f"result = open('{PROJECT}/readme.txt').read()")
    for code in (write(path), f"os.unlink('{PROJECT}/readme.txt')", f"os.chmod('{PROJECT}', 511)"):
        assert tried(machine, "ro", code) == READ_ONLY
    assert tried(machine, "rw", write(path)) == "written"  # the twin
    lease = f"import fcntl; fcntl.fcntl(open('{PROJECT}/readme.txt'), fcntl.F_SETLEASE, 0)"
    assert tried(machine, "ro", lease) == "OSError 1"  # it would make alice wait for the writer


def test_one_wrapper_cannot_use_another_s_workspace(machine: Machine) -> None:
    with machine.session("rw"), machine.session("other") as other, machine.session("nothing") as no:
        assert other.evaluate(f"open('{PROJECT}/readme.txt')") == NOT_THERE
        assert no.evaluate("import os; os.listdir('/home')") == "OSError 13"
        assert other.evaluate(f"result = open('{HOME}/other/file').read()") == "in other\n"
    for name in ("other", "rw"):  # outside of its wrapper, an account has no access, rw's neither
        with pytest.raises(CommandFailedError, match="Permission denied"):
            machine.as_root(f"setpriv --reuid mcpw-{name} --clear-groups cat {PROJECT}/readme.txt")


def test_nothing_is_mounted_in_the_machine_itself(machine: Machine) -> None:
    before = machine.read("/proc/1/mountinfo")
    with machine.session("rw"), machine.session("ro"):
        assert machine.read("/proc/1/mountinfo") == before
        machine.as_root(f"mkdir /srv/on-top; mount --bind /srv/on-top {PROJECT}/src")
        assert tried(machine, "rw", "result = os.getcwd()")  # root's mounts stay outside
        machine.as_root(f"umount {PROJECT}/src; rmdir /srv/on-top")


# ------------------------------------------------------------------------------ files that run code
@pytest.mark.parametrize(
    "code",
    [
        write(f"{PROJECT}/.git/hooks/pre-commit"),
        pytest.param(write(f"{PROJECT}/.git/hooks/pre-push"), marks=ANOTHER),
        write(f"{PROJECT}/.git/config"),
        write(f"{PROJECT}/.envrc"),
        pytest.param(write(f"{PROJECT}/.mcp.json"), marks=ANOTHER),
        write(f"{PROJECT}/.claude/settings.json"),
        pytest.param(write(f"{PROJECT}/.cursor/mcp.json"), marks=ANOTHER),
        pytest.param(write(f"{PROJECT}/.vscode/tasks.json"), marks=ANOTHER),
        f"os.unlink('{PROJECT}/.git/hooks/pre-commit')",
        f"os.chmod('{PROJECT}/.git/hooks/pre-commit', 0o777)",
    ],
)
def test_what_runs_code_as_the_agent_cannot_be_changed(machine: Machine, code: str) -> None:
    assert tried(machine, "rw", code) == READ_ONLY
    assert tried(machine, "free", f"{code}\nresult = 'done'") == "done"  # protect = false
    machine.as_user("alice", "cd project; git init -q; touch .git/hooks/pre-commit .envrc")


@pytest.mark.parametrize(
    "code",
    [
        f"os.rename('{PROJECT}/.git', '{PROJECT}/x')",
        pytest.param(
            f"os.rename('{PROJECT}/.claude', '{PROJECT}/x')",
            marks=ANOTHER,
        ),
        f"os.unlink('{PROJECT}/.envrc')",
        f"os.rename('{PROJECT}/readme.txt', '{PROJECT}/.envrc')",
        pytest.param(
            f"open('{PROJECT}/c', 'w'); os.rename('{PROJECT}/c', '{PROJECT}/.mcp.json')",
            marks=ANOTHER,
        ),
        f"os.rename('{PROJECT}', '{HOME}/x')",
    ],
)
def test_nor_can_another_be_put_in_its_place(machine: Machine, code: str) -> None:
    # Another mount (EXDEV), a path where a mount is, or a /home in which nothing can be made.
    assert tried(machine, "rw", code) in {"OSError 18", BUSY, READ_ONLY}
    machine.as_user("alice", "ls -d project/.git project/readme.txt project/.envrc")


RUN = [
    ".gemini/settings.json", ".codex/config.toml", ".kiro/settings/mcp.json", "opencode.json",
    ".opencode/opencode.json", ".qwen/settings.json", ".zed/settings.json", ".amp/settings.json",
    ".github/mcp.json", ".agents/mcp_config.json", ".devin/mcp_config.json", ".husky/pre-commit",
    ".idea/workspace.xml", ".devcontainer/devcontainer.json", ".yarnrc.yml", ".cargo/config.toml",
    "mise.toml", ".pre-commit-config.yaml", ".npmrc", "pyproject.toml", ".tool-versions",
    ".python-version", "flake.nix", ".gitconfig", ".vimrc", ".openhands/setup.sh",
]  # fmt: skip
OBEYED = ["AGENTS.md", "CLAUDE.md", "WARP.md", "crush.md"]
BELOW_TOP = ["src/AGENTS.md", "src/.npmrc"]  # SECURITY.md: only the top is checked


@contextmanager
def with_names(machine: Machine) -> Iterator[list[str]]:
    """Make all of these in alice's project; yield them, and a new name in each of the folders."""
    names = [*RUN, *OBEYED]
    make = f"for n in {' '.join(names)}; do mkdir -p $(dirname $n); echo '# mine' > $n; done"
    machine.as_user("alice", f"cd project; {make}")
    folders = {name.rpartition("/")[0] for name in RUN} - {""}
    yield [*RUN, *(f"{folder}/new" for folder in sorted(folders))]
    tops = {name.partition("/")[0] for name in names}
    machine.as_user("alice", f"cd project; rm -rf {' '.join([*sorted(tops), *BELOW_TOP])}")


def test_settings_and_instructions_are_read_only_each_by_its_own_switch(machine: Machine) -> None:
    def refused(server: str) -> object:
        with machine.session(server) as session:
            asked = [*run, *OBEYED, *BELOW_TOP]
            return session.call("workspace_probes", "write_each", PROJECT, asked)

    with with_names(machine) as run:
        assert refused("rw") == dict.fromkeys([*run, *OBEYED], "EROFS")
        assert refused("told") == dict.fromkeys(run, "EROFS")  # protect_instructions = false
        assert refused("free") == dict.fromkeys(OBEYED, "EROFS")  # protect = false
        written = machine.as_user("alice", "cd project; tail -n1 AGENTS.md .npmrc .codex/new").out
        assert written.count("# written") == 3
        assert machine.as_user("alice", "stat -c %U project/.codex/new").out == "alice\n"
    planned = machine.as_root("mcpwrap plan").out
    assert "WIDENED by [mcp_servers.free.mcpwrap] protect: " in planned
    assert "WIDENED by [mcp_servers.told.mcpwrap] protect_instructions: " in planned
    assert "mcp_servers.rw" not in planned


APPEARS = [  # how a server makes a name that was not there
    (".codex", f"from {PROBES} import flash; flash('{PROJECT}/.codex')"),  # and it is removed again
    ("AGENTS.md", f"open('{PROJECT}/c', 'w'); os.rename('{PROJECT}/c', '{PROJECT}/AGENTS.md')"),
    (".npmrc", f"os.link('{PROJECT}/readme.txt', '{PROJECT}/.npmrc')"),
    (".gemini", f"os.symlink('src', '{PROJECT}/.gemini')"),
    (".hg", f"os.mkdir('{PROJECT}/.hg')"),
    ("HEAD", f"open('{PROJECT}/HEAD', 'w')"),  # of a bare repository, with its other parts
]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param(*row, marks=() if row[0] in {".codex", "AGENTS.md"} else ANOTHER)
        for row in APPEARS
    ],
    ids=[row[0] for row in APPEARS],
)
def test_a_name_that_appears_ends_the_session(machine: Machine, name: str, code: str) -> None:
    with machine.session("rw") as session:
        assert session.evaluate(f"import os; os.mkdir('{PROJECT}/.codexx'); result = 1") == 1
        assert session.evaluate(f"import os; os.rmdir('{PROJECT}/.codexx'); result = 1") == 1
        session.ask(f"import os; {code}")
        assert f"{PROJECT}/{name} has appeared, and must be read-only" in session.await_end()
    machine.as_user("alice", f"cd project; rm -rf {name} c")


LINKS = """cd project; mkdir docs scripts; echo be kind > docs/rules; echo too > docs/more
touch docs/free; echo all > AGENTS.md; ln -s AGENTS.md CLAUDE.md; ln -s docs/rules .rules
ln -s way QWEN.md; ln -s docs/more way; ln -s ~/other/file GEMINI.md
echo true > scripts/check; ln -s ../../scripts/check .git/hooks/commit-msg
"""
NO_LINKS = "CLAUDE.md .rules QWEN.md way GEMINI.md AGENTS.md docs scripts .git/hooks/commit-msg"


def test_what_a_held_link_leads_to_is_held(machine: Machine) -> None:
    machine.as_user("alice", LINKS)
    held = ["AGENTS.md", "CLAUDE.md", "docs/rules", ".rules", "docs/more", "QWEN.md", "way"]
    with machine.session("rw") as session:
        names = [*held, "scripts/check", "docs/free"]
        refused = session.call("workspace_probes", "write_each", PROJECT, names)
        assert refused == dict.fromkeys(names[:-1], "EROFS")
        for name in (*held, "GEMINI.md", "scripts/check"):
            assert session.evaluate(f"import os; os.unlink('{PROJECT}/{name}')") == BUSY
        assert session.evaluate(f"import os; os.rename('{PROJECT}/docs', '{PROJECT}/d')") == BUSY
        assert session.evaluate(f"result = open('{PROJECT}/.rules').read()") == "be kind\n"
        machine.as_user("alice", "ln -sfn docs/free project/way")
        assert "project/way was moved, replaced or unmounted" in session.await_end()
    machine.as_user("alice", f"cd project; rm -r {NO_LINKS}")


NOT_HELD = [  # made by alice, or by a server before; and why there is no session then
    ("ln -s . .codex", ".codex is a symbolic link: it leads to a folder that the server"),
    ("ln -s src/none .npmrc", ".npmrc is a symbolic link: its target does not exist"),
    ("mkdir .codex; ln readme.txt .codex/config.toml", ".codex/config.toml has a second name"),
    ("ln -s $(printf %0300d) .codex", ".codex cannot be resolved: File name too long"),
    # No report is made of a name that is made there and removed again.
    ("chmod u-r .git; touch .npmrc", "new names in /home/alice/project/.git cannot be watched"),
]


def test_what_could_be_written_by_another_way_starts_no_session(machine: Machine) -> None:
    machine.announce("mcpwrap@rw|rw cannot start")
    for make, said in NOT_HELD:
        machine.as_user("alice", f"cd project; {make}")
        with pytest.raises(CommandFailedError, match=said):
            machine.as_user("alice", "mcpwrap-connect rw </dev/null")
        machine.as_user("alice", "cd project; chmod u+r .git; rm -rf .codex .npmrc")
        machine.await_admission("rw")
    machine.as_user("alice", "cd project; echo all > AGENTS.md; ln AGENTS.md CLAUDE.md")
    with machine.session("rw") as session:  # the twin: both names are held
        refused = session.call("workspace_probes", "write_each", PROJECT, OBEYED[:2])
        assert refused == dict.fromkeys(OBEYED[:2], "EROFS")
    machine.as_user("alice", "cd project; rm AGENTS.md CLAUDE.md")


def test_a_server_may_commit_all_the_same(machine: Machine) -> None:
    with machine.session("rw") as session:
        assert session.call("workspace_probes", "commit", PROJECT) == ""
    assert "by-a-server" in machine.as_user("alice", "cd project; git log --oneline").out


def test_the_agent_is_not_held_up(machine: Machine) -> None:
    """The agent replaces a file that is read-only for the server; then the server restarts."""
    with machine.session("rw") as session:
        session.evaluate("result = 1")
        machine.as_user("alice", "cd project; git config some.key value; git config some.key")
        assert f"{PROJECT}/.git/config was moved, replaced or unmounted" in session.await_end()
        assert session.close()[0] == 137
    assert tried(machine, "rw", write(f"{PROJECT}/.git/config")) == READ_ONLY
    machine.as_user("alice", "mv project elsewhere; mv elsewhere project; rm project/.envrc")
    assert tried(machine, "rw", f"result = os.path.exists('{PROJECT}/.envrc')") is False


def test_a_name_that_a_server_makes_is_told_and_held_from_then_on(machine: Machine) -> None:
    machine.as_user("alice", "rm -f project/.envrc")
    with machine.session("rw") as session:
        session.ask(write(f"{PROJECT}/.envrc"))
        assert ".envrc has appeared, and must be read-only" in session.await_end()
    assert tried(machine, "rw", write(f"{PROJECT}/.envrc")) == READ_ONLY


def test_where_git_is_read_only_it_cannot_be_led_elsewhere(machine: Machine) -> None:
    """`.git/commondir` does not exist until a process makes it: SECURITY.md."""
    given = [f"{PROJECT}:rw", f"{PROJECT}/.git:ro"]
    with_server(machine, probe("strict", f"workspace = {json.dumps(given)}"))
    with machine.session("strict") as session:
        assert session.call("workspace_probes", "redirect_git", PROJECT) == READ_ONLY
    with machine.session("rw") as session:
        session.ask(f"from {PROBES} import redirect_git; redirect_git({PROJECT!r})")
        assert ".git/commondir has appeared" in session.await_end()
    machine.as_user("alice", "cd project; rm -rf evil .git/commondir fired; git status")


# ------------------------------------------------------------------------------ several workspaces
def test_several_nested_and_single_files(machine: Machine) -> None:
    machine.as_user(
        "alice", "mkdir -p project/a/b/vendor project/docs; touch project/pyproject.toml"
    )
    given = [
        f"{PROJECT}:rw",
        f"{PROJECT}/a/b/vendor:ro",
        f"{HOME}/other:ro",
        f"{HOME}/notes/one.txt:rw",
        f"{PROJECT}/pyproject.toml:rw",  # by name it is not held
    ]
    with_server(machine, probe("many", f"workspace = {json.dumps(given)}"))
    with machine.session("many") as session:

        def attempt(code: str) -> object:
            return session.evaluate(f"import os; {code}")

        assert attempt(write(f"{PROJECT}/a/file")) == "written"
        assert attempt(write(f"{PROJECT}/a/b/vendor/file")) == READ_ONLY
        assert attempt(f"os.rename('{PROJECT}/a', '{PROJECT}/z')") == BUSY  # would remove it
        assert attempt(f"os.rename('{PROJECT}/docs', '{PROJECT}/z'); result = 1") == 1  # the twin
        assert attempt(write(f"{HOME}/other/file")) == READ_ONLY
        assert attempt(write(f"{HOME}/notes/one.txt")) == "written"
        assert attempt(f"result = os.listdir('{HOME}/notes')") == ["one.txt"]
        assert attempt(write(f"{PROJECT}/pyproject.toml")) == "written"
    assert tried(machine, "rw", write(f"{PROJECT}/pyproject.toml")) == READ_ONLY  # the twin
    assert machine.as_user("alice", "cat notes/one.txt").out == "just a note\nx"
    machine.as_user("alice", "rm project/pyproject.toml")


def test_a_folder_outside_of_home(machine: Machine) -> None:
    machine.as_root("mkdir -p /srv/disk && mount -t tmpfs -o mode=755 tmpfs /srv/disk")
    machine.as_root("install -d -o alice -g alice -m 700 /srv/disk/project")
    machine.as_user("alice", "echo here > /srv/disk/project/file")
    with_server(machine, probe("srv", 'workspace = ["/srv/disk/project:rw"]'))
    assert tried(machine, "srv", "result = open('/srv/disk/project/file').read()") == "here\n"
    assert tried(machine, "srv", write("/srv/disk/project/made")) == "written"
    assert tried(machine, "srv", write("/srv/disk/made")) == READ_ONLY
    assert machine.as_user("alice", "stat -c %U /srv/disk/project/made").out == "alice\n"
    machine.as_root("chmod 700 /srv/disk")
    machine.configure(STANDING + probe("srv", 'workspace = ["/srv/disk/project:rw"]'))
    with pytest.raises(CommandFailedError, match=r"is in /srv/disk, which other accounts cannot"):
        machine.apply()
    with_server(machine, "")
    machine.as_root("umount /srv/disk")


def test_a_folder_of_one_of_several_agents(machine: Machine) -> None:
    text = probe("both", f'workspace = ["{HOME}/other:rw"]', agents="['alice', 'bob']")
    machine.configure(STANDING + text)
    with pytest.raises(CommandFailedError, match=r"would share this server's workspace"):
        machine.apply()
    with_server(machine, text + "shared = true\n")
    with machine.session("both", user="bob") as session:
        assert session.evaluate(write(f"{HOME}/other/bobs")) == "written"
    assert machine.as_user("alice", "stat -c %U:%G other/bobs").out == "alice:alice\n"


# ------------------------------------------------------------------------------ missing workspaces
def test_a_folder_that_appears_later(machine: Machine) -> None:
    text = probe("later", f'workspace = ["{HOME}/later:rw"]')
    assert f"note: later does not start: {HOME}/later does not exist" in with_server(machine, text)
    machine.announce("mcpwrap@later|later cannot start")
    with pytest.raises(CommandFailedError, match="later does not exist; make it"):
        machine.as_user("alice", "mcpwrap-connect later </dev/null")
    assert "later does not exist" in machine.as_root("mcpwrap status later", status=1).out
    machine.as_user("alice", "mkdir later; echo now > later/file")
    machine.await_admission("later")
    assert tried(machine, "later", f"result = open('{HOME}/later/file').read()") == "now\n"


def test_a_folder_that_goes_away_and_comes_back(machine: Machine) -> None:
    with_server(machine, probe("goes", f'workspace = ["{HOME}/goes:rw"]'))
    machine.as_user("alice", "mkdir goes; echo 1 > goes/which")
    which = f"result = open('{HOME}/goes/which').read()"
    assert tried(machine, "goes", which) == "1\n"
    machine.as_user("alice", "mv goes old; mkdir goes; echo 2 > goes/which")
    assert tried(machine, "goes", which) == "2\n"  # not the one that is elsewhere now
    with machine.session("goes") as session:
        assert session.evaluate(which) == "2\n"
        machine.as_user("alice", "rm -r goes")
        assert "goes was moved, replaced or unmounted" in session.await_end()
    machine.announce("mcpwrap@goes|goes cannot start")
    machine.as_user("alice", "mcpwrap-connect goes </dev/null", status=70)
    machine.as_user("alice", "mv old goes")
    machine.await_admission("goes")
    assert tried(machine, "goes", which) == "1\n"


def test_no_session_without_its_mounts(machine: Machine) -> None:
    with machine.session("ro") as session:
        session.evaluate("result = 1")
        pid = machine.show("mcpwrap@ro.service", "MainPID")["MainPID"]
        machine.as_root(f"nsenter -t {pid} -m umount -l {PROJECT}")
        assert "project was moved, replaced or unmounted" in session.await_end()
    assert tried(machine, "ro", f"result = open('{PROJECT}/readme.txt').read()")


REFUSALS = [  # the command that makes it, the folder, and the output of `apply`
    (
        "install -d -o alice /srv/alices",
        "/srv/alices:rw",
        "/srv/alices is on overlay, which cannot",
    ),
    (
        "install -d -o mallory /home/mallory/p",
        "/home/mallory/p:ro",
        "belongs to mallory, which is not an agent",
    ),
    ("install -d /home/alice/roots", "/home/alice/roots:ro", "belongs to root, which is not an"),
    ("true", "/home/alice:ro", "is the home of alice: with it the server would"),
    ("true", "/home:ro", "belongs to root, which is not an agent"),
    ("ln -sfn /home/alice/other /home/alice/ln", "/home/alice/ln:ro", "is behind a symbolic link"),
    ("ln -sfn /home/bob /home/alice/lb", "/home/alice/lb/x:ro", "is behind a symbolic link"),
    ("mkfifo /home/alice/ff; chown alice /home/alice/ff", "/home/alice/ff:ro", "neither a folder"),
    ("touch /home/alice/tt", "/home/alice/tt/x:ro", "a file is in its path"),
    ("true", "/etc/ssl:ro", "/etc is a system directory"),
]


@pytest.mark.parametrize(("make", "folder", "said"), REFUSALS, ids=[row[1] for row in REFUSALS])
def test_what_cannot_be_given_is_refused_before_anything_changes(
    standing: Machine, make: str, folder: str, said: str
) -> None:
    machine = standing
    machine.as_root(make)
    look = "cd /var/lib/mcpwrap; cat *.json servers/*; ls /etc/systemd/system; getent passwd"
    before = machine.look(look)
    machine.configure(STANDING + probe("bad", f'workspace = ["{folder}"]'))
    done = machine.as_root("mcpwrap apply", status=2)
    assert said in done.err
    assert "nothing was changed" in done.err
    assert machine.look(look) == before
    machine.configure(STANDING)  # which is in force


def test_what_apply_saw_is_looked_at_again_at_each_start(machine: Machine) -> None:
    """The agent can move the folder: the file there then decides."""
    machine.as_user("alice", "mkdir -p turns")
    with_server(machine, probe("turns", f'workspace = ["{HOME}/turns:rw"]'))
    machine.as_user("alice", "rmdir turns; ln -s /etc turns")
    machine.announce("mcpwrap@turns|turns cannot start")
    with pytest.raises(CommandFailedError, match="turns is behind a symbolic link"):
        machine.as_user("alice", "mcpwrap-connect turns </dev/null")
    machine.as_user("alice", "rm turns")
    machine.as_root(f"install -d -o mallory {HOME}/turns")
    with pytest.raises(CommandFailedError, match="turns belongs to mallory"):
        machine.as_user("alice", "mcpwrap-connect turns </dev/null")
    machine.as_user("alice", "rmdir turns; mkdir turns")
    machine.await_admission("turns")


# ------------------------------------------------------------------------------ mechanisms
MUTANTS = [  # the module, the line, its replacement, and what a server then reaches
    (
        "as_root/workspaces/idmapped_folder",
        "| Attribute.MAPPED",
        "",
        "ro",
        f"open('{PROJECT}/readme.txt')",
    ),
    (
        "as_root/workspaces/idmapped_folder",
        "        wanted |= Attribute.READ_ONLY\n",
        "        pass\n",
        "ro",
        f"open('{PROJECT}/src/by-ro', 'w')",
    ),
    (
        "linux/mount/held_names",
        "Attribute.READ_ONLY if is_held else Attribute(0)",
        "Attribute(0)",
        "rw",
        f"open('{PROJECT}/.git/hooks/pre-commit', 'a')",
    ),
    (
        "core/mount_layout",
        "        yield from _pins(folder.path, path)\n",
        "",
        "rw",
        f"os.rename('{PROJECT}/.git', '{PROJECT}/.g'); os.rename('{PROJECT}/.g', '{PROJECT}/.git')",
    ),
]


@TWIN
@pytest.mark.parametrize(
    ("module", "line", "instead", "name", "code"), MUTANTS, ids=["map", "ro", "hold", "pin"]
)
def test_each_mechanism_is_what_decides(
    machine: Machine, module: str, line: str, instead: str, name: str, code: str
) -> None:
    code += "; result = 'done'"
    with_it = tried(machine, name, code)
    with machine.patched(module, line, instead):
        without_it = tried(machine, name, code)
    assert (with_it == "done") != (without_it == "done")
    assert (with_it == "done") == (
        module == "as_root/workspaces/idmapped_folder" and "MAPPED" in line
    )


@TWIN
def test_the_look_at_links_and_second_names_is_what_refuses(machine: Machine) -> None:
    machine.as_user(
        "alice",
        "cd project; mkdir docs; echo be kind > docs/rules; ln -s docs/rules .rules; "
        "ln readme.txt .npmrc",
    )
    ways = ["docs/rules", "readme.txt"]
    look = "        held_names.expect_no_other_path(workspaces, wanted, links)\n"
    with (
        machine.patched("as_root/workspaces/mount", look, "        pass\n"),
        machine.session("rw") as session,
    ):
        assert session.call("workspace_probes", "write_each", PROJECT, ways) == {}
    written = machine.as_user(
        "alice", "cd project; tail -qn1 .rules .npmrc; rm -r docs .rules .npmrc"
    )
    assert written.out == "# written\n" * 2
    machine.as_user("alice", "cd project; echo 'hello from alice' > readme.txt")


@TWIN
def test_watching_names_is_what_notices_those_that_are_gone_again(machine: Machine) -> None:
    with (
        machine.patched(
            "as_wrapper/workspace_mounts", "self._names.read() & self._unheld", "set[str]()"
        ),
        machine.patched(
            "as_wrapper/workspace_mounts", "poll.register(self._names, select.POLLIN)", "pass"
        ),
        machine.session("rw") as session,
    ):
        flash = f"from {PROBES} import flash; flash('{PROJECT}/.codex'); result = 'gone'"
        assert session.evaluate(flash) == "gone"
        assert (
            session.evaluate("import time; time.sleep(2.5); result = 'still there'")
            == "still there"
        )


@TWIN
def test_the_look_at_the_owner_is_what_refuses(machine: Machine) -> None:
    machine.as_root("install -d -o mallory -m 700 /home/mallory/hers")
    text = probe("hers", 'workspace = ["/home/mallory/hers:ro"]')
    with machine.patched(
        "as_root/workspaces/idmapped_folder", "if not _is_agent(owner, workspaces):", "if False:"
    ):
        with_server(machine, text)
        assert tried(machine, "hers", "os.listdir('/home/mallory/hers'); result = 1") == 1
    machine.configure(STANDING + text)
    machine.as_root("mcpwrap apply", status=2)
    with_server(machine, "")


@TWIN
def test_the_look_at_the_mounts_is_what_notices(machine: Machine) -> None:
    look = f"result = os.listdir('{HOME}/other')"
    assert "file" in tried(machine, "other", look)  # type: ignore[operator]
    with machine.patched("as_wrapper/workspace_mounts", "if now.get(path) != mount:", "if False:"):
        assert tried(machine, "other", look)
        machine.as_user("alice", "mv other old-one; mkdir other")
        assert tried(machine, "other", look)  # the folder that is elsewhere now
        machine.as_user("alice", "rmdir other; mv old-one other")
    assert tried(machine, "other", look)
    machine.as_user("alice", "mv other old-one; mkdir other")
    assert tried(machine, "other", look) == []
    machine.as_user("alice", "rmdir other; mv old-one other")


@only_in_test_all("second order: mounts do not depend on the control groups' version")
def test_with_control_groups_of_version_2_it_is_the_same(boot: Callable[..., Machine]) -> None:
    """There the unit's group is delegated, and root's command runs in a group beside it."""
    machine = boot(Profile.BPF)
    machine.as_user("alice", "mkdir -m 700 project; echo hello > project/readme.txt")
    machine.configure(RO)
    machine.apply()
    assert tried(machine, "ro", f"result = open('{PROJECT}/readme.txt').read()") == "hello\n"
    assert tried(machine, "ro", write(f"{PROJECT}/readme.txt")) == READ_ONLY
