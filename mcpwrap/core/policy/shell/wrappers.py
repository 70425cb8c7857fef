"""Programs that run another command: their options, and where that command begins.

Source: the manual page or `--help` of each program.
"""

import re
from dataclasses import dataclass

_NO_OPTIONS: frozenset[str] = frozenset()
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_TEXT_OPTION = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_INTERPRETER = re.compile(r"(?:python|pypy|php|ruby|node|nodejs|perl|tsx|ts-node)[0-9.]*")
_CODE = frozenset({"-c", "-e", "-r", "-p", "--eval", "--print", "--run", "-E"})
_VALUED_BY_INTERPRETER = frozenset({"-W", "-X", "-d", "--require", "--import", "--loader", "-I"})


@dataclass(frozen=True, slots=True)
class InnerWords:
    """Command that a wrapper runs."""

    words: tuple[str, ...]
    is_elsewhere: bool = False  # on another machine or in a container, so in another folder
    folder: str = ""  # the wrapper changes to it
    placeholder: str = ""  # for what the wrapper reads from its input


@dataclass(frozen=True, slots=True)
class InnerLine:
    """Text that a wrapper has a shell run."""

    text: str
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class _Wrapper:
    subcommands: tuple[str, ...] = ()
    valued: frozenset[str] = _NO_OPTIONS  # options whose value is the next word
    texts: frozenset[str] = _NO_OPTIONS  # options whose value is a line for a shell
    operands: int = 0  # words before the command
    is_joined: bool = False  # the rest is a line for a shell
    is_first_a_line: bool = False  # the first operand is one
    is_elsewhere: bool = False
    folders: frozenset[str] = _NO_OPTIONS  # options whose value is the folder of the command
    placeholders: frozenset[str] = _NO_OPTIONS
    placeholder: str = ""


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELL = _Wrapper(
    valued=_options("-o +o -O -eo -uo -euo -exo -euxo --rcfile --init-file"), texts=_options("-c")
)
_PLAIN = _Wrapper()
_EXEC_IN = _options("-e --env -u --user -w --workdir --env-file --detach-keys --index")
_COMPOSE = _EXEC_IN | _options(
    "-f --file -p --project-name --profile --project-directory --name --entrypoint -v --volume"
)
_OF_PACKAGES = _options("-p --package -C --dir --cwd --filter -F -w --workspace --prefix")
_OF_UV = _options(
    "--with --python -p --env-file --group --extra --project --directory --package --from "
    "--with-requirements --with-editable --index --no-group"
)
_SSH = _options("-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -Q -S -W -w -B -P")
_KUBECTL = _options("-n --namespace -c --container --context --kubeconfig --cluster --user")


def _run(*names: str, valued: str = "", operands: int = 0) -> tuple[_Wrapper, ...]:
    return tuple(_Wrapper((name,), _options(valued), operands=operands) for name in names)


_WRAPPERS: dict[str, tuple[_Wrapper, ...]] = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"), (_SHELL,)),
    **dict.fromkeys(
        ("nohup", "setsid", "builtin", "chronic", "unbuffer", "caffeinate", "busybox", "cross-env",
         "sail", "ddev", "lando", "torsocks", "proxychains", "tsocks", "catchsegv"),
        (_PLAIN,),
    ),
    "eval": (_Wrapper(is_joined=True),),
    "watch": (_Wrapper(valued=_options("-n --interval"), is_joined=True),),
    "trap": (_Wrapper(is_first_a_line=True),),
    "sudo": (_Wrapper(valued=_options(
        "-u --user -g --group -h --host -p --prompt -C -T -R -D --chdir -U -r -t"),
        folders=_options("-D --chdir")),),
    "doas": (_Wrapper(valued=_options("-u -C")),),
    "pkexec": (_Wrapper(valued=_options("--user")),),
    "env": (_Wrapper(valued=_options("-u --unset"), texts=_options("-S --split-string"),
                     folders=_options("-C --chdir")),),
    "exec": (_Wrapper(valued=_options("-a")),),
    "command": (_PLAIN,),
    "time": (_Wrapper(valued=_options("-f --format -o --output")),),
    "nice": (_Wrapper(valued=_options("-n --adjustment")),),
    "ionice": (_Wrapper(valued=_options("-c --class -n --classdata -p")),),
    "stdbuf": (_Wrapper(valued=_options("-i -o -e")),),
    "timeout": (_Wrapper(valued=_options("-s --signal -k --kill-after"), operands=1),),
    "flock": (_Wrapper(valued=_options("-w --timeout -E"), texts=_options("-c --command"),
                       operands=1),),
    "chroot": (_Wrapper(operands=1, is_elsewhere=True),),
    "su": (_Wrapper(valued=_options("-s -g -G -w"), texts=_options("-c --command"), operands=1),),
    "runuser": (_Wrapper(valued=_options("-u -s -g -G -w"), texts=_options("-c --command")),),
    "script": (_Wrapper(texts=_options("-c --command"), operands=1),),
    "nsenter": (_Wrapper(valued=_options("-t --target -S --setuid -G --setgid")),),
    "systemd-run": (_Wrapper(valued=_options("-p --property -u --unit -E --setenv -M -H")),),
    "strace": (_Wrapper(valued=_options("-e -o -s -p -E -u")),),
    "xargs": (_Wrapper(valued=_options("-n -P -d -L -s -E -a --max-args --max-procs --delimiter"),
                       placeholders=_options("-I --replace"), placeholder="{}"),),
    "parallel": (_Wrapper(valued=_options("-j --jobs -n -N"), placeholders=_options("-I"),
                          placeholder="{}"),),
    "ssh": (_Wrapper(valued=_SSH, operands=1, is_joined=True, is_elsewhere=True),),
    **dict.fromkeys(
        ("docker", "podman", "nerdctl"),
        (
            _Wrapper(("exec",), _EXEC_IN, operands=1, is_elsewhere=True),
            _Wrapper(("container", "exec"), _EXEC_IN, operands=1, is_elsewhere=True),
            _Wrapper(("compose", "exec"), _COMPOSE, operands=1, is_elsewhere=True),
            _Wrapper(("compose", "run"), _COMPOSE, operands=1, is_elsewhere=True),
        ),
    ),
    **dict.fromkeys(
        ("docker-compose", "podman-compose"),
        (
            _Wrapper(("exec",), _COMPOSE, operands=1, is_elsewhere=True),
            _Wrapper(("run",), _COMPOSE, operands=1, is_elsewhere=True),
        ),
    ),
    **dict.fromkeys(
        ("kubectl", "oc"), (_Wrapper(("exec",), _KUBECTL, operands=1, is_elsewhere=True),)
    ),
    **dict.fromkeys(
        ("npx", "bunx", "pnpx"), (_Wrapper(valued=_OF_PACKAGES, texts=_options("-c --call")),)
    ),
    "npm": tuple(
        _Wrapper((name,), _OF_PACKAGES, texts=_options("-c --call"))
        for name in ("exec", "x", "run", "run-script")
    ),
    **dict.fromkeys(
        ("pnpm", "yarn", "bun"),
        (*(_Wrapper((name,), _OF_PACKAGES) for name in ("exec", "dlx", "run")),
         _Wrapper(valued=_OF_PACKAGES)),
    ),
    "deno": _run("run", "task"),
    "uv": (_Wrapper(("run",), _OF_UV), _Wrapper(("tool", "run"), _OF_UV)),
    "uvx": (_Wrapper(valued=_OF_UV),),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "rye", "hatch"), _run("run")),
    "pipx": _run("run", valued="--spec --python"),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _run("run", valued="-n --name -p --prefix")),
    **dict.fromkeys(("bundle", "composer", "mise", "asdf"), _run("exec")),
    **dict.fromkeys(("direnv", "aws-vault"), _run("exec", operands=1)),
    **dict.fromkeys(
        ("doppler", "op", "railway", "infisical", "heroku", "foreman", "dotenvx"),
        _run("run", valued="-a --app -p --project -c --config -e --env -f --env-file -s --service"),
    ),
    "dotenv": (_Wrapper(valued=_options("-e -f -p -c --file")), *_run("run", valued="-f --file")),
}  # fmt: skip


def base_name(word: str) -> str:
    """Return the name of a program: without its folder, and without a version of its package."""
    name = word.rstrip("/").rpartition("/")[2].removesuffix(".exe")
    return name.partition("@")[0] or name


def unwrapped(words: tuple[str, ...]) -> InnerWords | InnerLine | None:
    """Return what a command runs, if it is a wrapper of another."""
    program = base_name(words[0])
    if _INTERPRETER.fullmatch(program):
        return _of_interpreter(words[1:])
    for wrapper in _WRAPPERS.get(program, ()):
        found = _Reading(wrapper, words[1:]).inner()
        if found is not None:
            return found
    return None


def has_input_as_line(words: tuple[str, ...]) -> bool:
    """Return whether a command is a shell that reads its commands from its input."""
    return _WRAPPERS.get(base_name(words[0])) == (_SHELL,) and all(
        word.startswith("-") and not _TEXT_OPTION.fullmatch(word) for word in words[1:]
    )


class _Reading:
    """Reading of a wrapper's words."""

    def __init__(self, wrapper: _Wrapper, words: tuple[str, ...]) -> None:
        self._wrapper = wrapper
        self._words = words
        self._at = 0
        self._line: str | None = None
        self._has_line = wrapper.is_first_a_line  # the next operand is a line for a shell
        self._folder = ""
        self._placeholder = wrapper.placeholder

    def inner(self) -> InnerWords | InnerLine | None:
        """Return the command that the words have."""
        wrapper = self._wrapper
        for subcommand in wrapper.subcommands:
            self._skip_options()
            if self._taken() != subcommand:
                return None
        self._skip_options()
        if wrapper.operands and not self._has_line and self._line is None:
            self._at += wrapper.operands
            self._skip_options()
        if self._has_line:
            self._line = self._taken()
        if self._line is not None:
            return InnerLine(self._line, wrapper.is_elsewhere)
        return self._rest()

    def _rest(self) -> InnerWords | InnerLine | None:
        """Return the command that the words after options and operands are."""
        rest = self._words[self._at :]
        while rest and _ASSIGNED.fullmatch(rest[0]):
            rest = rest[1:]
        if not rest:
            return None
        if self._wrapper.is_joined:
            return InnerLine(" ".join(rest), self._wrapper.is_elsewhere)
        return InnerWords(rest, self._wrapper.is_elsewhere, self._folder, self._placeholder)

    def _skip_options(self) -> None:
        """Go on to the next word that is no option, nor the value of one."""
        while self._line is None and self._at < len(self._words):
            word = self._words[self._at]
            if not word.startswith(("-", "+")):
                return
            self._at += 1
            if word == "--":
                return
            self._take_option(word)

    def _take_option(self, word: str) -> None:
        wrapper = self._wrapper
        name, has_value, value = word.partition("=")
        if "-c" in wrapper.texts and _TEXT_OPTION.fullmatch(word):
            self._has_line = True
        elif name in wrapper.texts:
            self._line = value if has_value else self._taken()
        elif name in wrapper.folders:
            self._folder = value if has_value else self._taken()
        elif name in wrapper.placeholders:
            self._placeholder = value if has_value else self._taken()
        elif word[:2] in wrapper.placeholders:
            self._placeholder = word[2:]
        elif word in wrapper.valued:
            self._at += 1

    def _taken(self) -> str:
        """Return the next word, or "", and go on to the one after it."""
        word = self._words[self._at] if self._at < len(self._words) else ""
        self._at += 1
        return word


def _of_interpreter(words: tuple[str, ...]) -> InnerWords | None:
    """Return the script or module of an interpreter as a command."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m":
            return InnerWords(words[at + 1 :]) if words[at + 1 :] else None
        if words[at] in _CODE:
            return None
        at += 2 if words[at] in _VALUED_BY_INTERPRETER else 1
    return InnerWords(words[at:]) if words[at:] else None
