"""Programs that a command line runs: wrappers, values of variables, folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpwrap.core.policy.shell.paths import ELSEWHERE, HERE, HOME, SOMEWHERE, UNKNOWN
from mcpwrap.core.policy.shell.trace import trace

X = ("x", ("-y", "z"), HERE)  # the invocation that each wrapper runs


def last(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return the program of a line that is run last, with its arguments and its folder."""
    run = trace(text).invocations[-1]
    return run.program, run.args, run.folder


@pytest.mark.parametrize(
    "text",
    [
        "x -y z", "/usr/bin/x -y z", "./x -y z", "x.exe -y z", "\\x -y z", "sh -c 'x -y z'",
        "bash -lc 'x -y z'", "bash -euo pipefail -c 'x -y z' name", "bash -c -e 'x -y z'",
        "zsh --login -c 'x -y z'", "sh -c \"sh -c 'x -y z'\"", "bash <<< 'x -y z'",
        "sh <<'E'\nx -y z\nE", "echo 'x -y z' | sh", "echo x -y z | bash -s", "eval x -y z",
        "eval 'x -y z'", "sudo x -y z", "sudo -u a -E -- x -y z", "sudo -ua B=c x -y z",
        "doas -u a x -y z", "env A=b C=d x -y z", "env -i -u A x -y z", "env -S 'x -y z'",
        "env --split-string='x -y z'", "A=b x -y z", "nohup x -y z", "time -p x -y z",
        "timeout -k 5 -s KILL 10 x -y z", "timeout --signal=KILL 5s x -y z", "nice -n 5 x -y z",
        "nice x -y z", "nsenter -t 1 -m x -y z", "systemd-run --user -p A=b x -y z",
        "cat <<E | sh\nx -y z\nE", "ionice -c3 x -y z", "stdbuf -oL x -y z", "setsid x -y z",
        "command x -y z", "exec -a n x -y z", "builtin x -y z", "flock -n f x -y z",
        "flock f -c 'x -y z'", "su - a -c 'x -y z'", "su -c 'x -y z' a",
        "su a --command='x -y z'", "runuser -u a -- x -y z", "script -qc 'x -y z' /dev/null",
        "watch -n 5 x -y z", "trap 'x -y z' EXIT", "npx x -y z", "npx -y -p a x -y z",
        "npx x@1.2 -y z", "npx @a/x -y z", "npx -c 'x -y z'", "bunx --bun x -y z",
        "npm exec -- x -y z", "npm run x -y z", "pnpm x -y z", "pnpm -C a exec x -y z",
        "pnpm dlx x -y z", "yarn x -y z", "yarn --cwd a run x -y z", "bun run x -y z",
        "uv run x -y z", "uv run --with a --python 3.12 x -y z", "uvx --from a x -y z",
        "uv tool run x -y z", "poetry run x -y z", "pipenv run x -y z", "conda run -n a x -y z",
        "pipx run x -y z", "bundle exec x -y z", "direnv exec . x -y z",
        "aws-vault exec a -- x -y z", "heroku run -a app x -y z", "dotenv -e .env -- x -y z",
        "python -m x -y z", "python3.12 -W error -m x -y z", "python x -y z", "php -d a=b x -y z",
        "ruby bin/x -y z", "node ./bin/x -y z", "uv run python -m x -y z", "sail x -y z",
        "xargs -n 1 -I{} x -y z{} < f", "for i in z; do x -y $i; done", "a=z; x -y $a",
        "x -y \"$(echo)z\" & x -y z", "(x -y z)", "{ x -y z; }", "a && x -y z", "if x -y z; then",
        "a=x; \"$a\" -y z", "a='-y z'; x $a", "a=(-y z); x \"${a[@]}\"", "export b=z; x -y $b",
        "a=z b=$a; x -y $b", "unset q; sudo sh -c 'env timeout 5 x -y z'", "exec > f; x -y z",
    ],
)  # fmt: skip
def test_a_wrapper_runs_what_it_wraps(text: str) -> None:
    program, args, folder = last(text)
    assert (program, tuple(arg.removesuffix(UNKNOWN) for arg in args), folder) == X
    assert trace(text).is_whole


@pytest.mark.parametrize(
    "text",
    [
        "ssh -p 22 -i k a@b x -y z", "ssh a 'cd q; x -y z'", "docker exec -it -u a c x -y z",
        "docker compose -f f exec -T s x -y z", "docker-compose run --rm s x -y z",
        "podman container exec c x -y z", "kubectl -n a exec p -c c -- x -y z",
        "chroot /a x -y z",
    ],
)  # fmt: skip
def test_what_runs_elsewhere_has_another_folder(text: str) -> None:
    assert last(text)[:2] == X[:2]
    assert last(text)[2].startswith(ELSEWHERE)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("sudo", "sudo"), ("sh", "sh"), ("npx -y", "npx"), ("docker ps", "docker"),
        ("npm ci", "npm"), ("uv pip install a", "uv"), ("python -c 'x -y z'", "python"),
        ("node -e 'x'", "node"), ("python -m", "python"), ("python", "python"), ("yarn", "yarn"),
        ("sh script.sh", "script.sh"), ("git add x", "git"), ("echo x", "echo"),
        ("command -v x", "x"), ("su -", "su"), ("timeout 5", "timeout"), ("$x", UNKNOWN),
    ],
)  # fmt: skip
def test_what_wraps_nothing_is_the_program(text: str, program: str) -> None:
    assert last(text)[0] == program


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("x", HERE), ("cd a; x", "a"), ("cd a/b/..; x", "a"), ("cd a && cd ..; x", HERE),
        ("cd ..; x", ".."), ("cd /a/../b; x", "/b"), ("cd; x", HOME), ("cd ~/a; x", f"{HOME}/a"),
        ("cd -; x", SOMEWHERE), ("cd $a; x", SOMEWHERE), ("cd -- a; x", "a"),
        ("(cd a); x", HERE), ("$(cd a) ; x", HERE), ("(cd a; x)", "a"), ("{ cd a; }; x", "a"),
        ("sh -c 'cd a'; x", HERE), ("sh -c 'cd a; x'", "a"), ("eval 'cd a'; x", "a"),
        ("pushd a; popd; x", HERE), ("pushd a; x", "a"), ("popd; x", SOMEWHERE),
        ("env -C a x", "a"), ("sudo --chdir=/a x", "/a"), ("cd \"$PWD/a\"; x", "a"),
        ("cd $(mktemp -d); x", "/tmp/mktemp"), ("cd \"$(pwd)\"; x", HERE),
        ("cd $(dirname $0)/..; x", HERE), ("cd $TMPDIR; x", "/tmp"),
    ],
)  # fmt: skip
def test_the_folder_is_followed(text: str, folder: str) -> None:
    assert last(text)[2] == folder


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("x $a", (UNKNOWN,)), ("a=1; x $a", ("1",)), ("x ~ $HOME", (HOME, HOME)),
        ("for a in 1 2; do x $a.$a; done", ("1.1", "1.2", "2.1", "2.2")),
        ("a=1; (a=2); x $a", ("1",)), ("a=1; a=2 b; x $a", ("2",)),
        ("read a; x $a", (UNKNOWN,)), ("echo 1 2 | read a; x $a", ("1", "2")),
        ("find d | while read a; do x $a; done", ("d/found",)),
        ("find -L d e -name f | xargs x", ("d/found", "e/found")),
        ("cd d; find . | xargs x", ("d/found",)), ("ls /d | xargs x", ("/d/found",)),
        ("git ls-files | xargs x", ("./found",)), ("cat f | xargs x", (UNKNOWN,)),
        ("xargs x", (UNKNOWN,)), ("echo a b | xargs -I% x %/c", ("a/c", "b/c")),
        ("echo a | parallel x {} {}", ("a", "a")),
        ("find d -exec x {} 1 \\;", ("d/found", "1")), ("find -exec x +", ("./found",)),
        ("local a=1; x $a", ("1",)), ("a=; x b$a", ("b",)), ("a='1  2'; x \"$a\"", ("1  2",)),
    ],
)  # fmt: skip
def test_arguments_have_the_values_that_the_line_gives(text: str, args: tuple[str, ...]) -> None:
    assert last(text)[1] == args


@pytest.mark.parametrize(
    ("text", "longer"),
    [
        ("for a in " + "b " * 200 + "; x $a", "for a in " + "b " * 300 + "; x $a"),
        ("a=b; " * 10, "a=bbbbbbbb; " + "a=$a$a; " * 40),
        ("sudo " * 15 + "x", "sudo " * 16 + "x"),
        ("find -exec " * 16 + "x", "find -exec " * 17 + "x"),
        ("echo {} {} | xargs -I{} echo {}", "echo {} {} {} | " + "xargs -I{} " * 15 + "echo {}"),
    ],
)  # fmt: skip
def test_a_trace_has_bounds(text: str, longer: str) -> None:
    assert trace(text).is_whole
    assert not trace(longer).is_whole


PIECES = st.sampled_from([
    "$(", "`", "(", ")", "{", "}", "'", '"', "\\", "\n", " ", ";", "&", "|", "<<E", "<<<", "<(",
    ">", "E\n", "$x", "${", "~", "case x in ", "esac", "a)", "for i in ", "do ", "done", "[[ ",
    "]]", "((", "))", "$((", "x=", "x=(", "sh -c ", "eval ", "xargs -I{} ", "{}",
    "find . -exec ", "\\;", "/", "cd ", "rm -rf ", "function f ", "f()", "$'", "#", "ssh h ",
    "trap ", "read x;", "-", "a", "|sh",
])  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=20))
def test_no_text_is_too_strange(text: str) -> None:
    assert trace(text) == trace(text)


def test_texts_for_other_shells_have_a_depth() -> None:
    text = "x"
    for _ in range(16):
        text = f"eval eval {text}"
    assert not trace(f"eval sh -c 'x; {'(' * 17}'").is_whole
    assert not trace(text).is_whole
