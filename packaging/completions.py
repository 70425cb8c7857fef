#!/usr/bin/python3
"""Completions for bash, zsh and fish: static files, made from the command line's own tree.

Called by packaging/stage.py. By hand, with the Python of an installation by pip:
`packaging/completions.py ~/.local/share`. The scripts are `packaging/shells/`, which get the
tables of commands here.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

SHELLS = Path(__file__).resolve().parent / "shells"
MARK = "@TABLE@\n"
HELP_CHARS = 500  # the first sentence of each command is shorter
# What a value is, unless click has a type for it. FILE, SERVER and SECRET are read when TAB is
# pressed; of a PROGRAM all the rest of the line is.
FILE, SERVER, SECRET, PROGRAM, TEXT = "file", "server", "secret", "program", "text"
KIND_OF_ARGUMENT = {
    "name": SERVER,
    "key": SECRET,
    "command": PROGRAM,
    **dict.fromkeys(("args", "id_", "ids", "session", "sha256", "tool", "tools", "user"), TEXT),
}
# Of a command and its option, or of an option of any command; all others are texts.
KIND_OF_OPTION = {
    ("--server",): SERVER,
    ("convert", "--hub"): SERVER,
    ("unwrap", "--file"): FILE,
}


@dataclass(frozen=True)
class Value:
    """Value of an argument or an option: its kind, or the texts that it may be."""

    kind: str = TEXT
    choices: tuple[str, ...] = ()
    shown: str = ""  # name in the usage line
    is_repeated: bool = False


@dataclass(frozen=True)
class Option:
    """Option with its spellings; without a value it is a flag."""

    names: tuple[str, ...]
    summary: str
    value: Value | None = None
    is_repeated: bool = False


@dataclass(frozen=True)
class Command:
    """Command, or group of commands. `path` has the words that are typed for it."""

    path: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]
    arguments: tuple[Value, ...] = ()
    commands: tuple["Command", ...] = ()

    def every(self) -> Iterator["Command"]:
        """Return this one, and all below it."""
        yield self
        for command in self.commands:
            yield from command.every()


STUB = Command(
    ("mcpwrap-connect",),
    "Start an MCP server of this machine",
    (Option(("-h", "--help"), "Show the usage and exit."),),
    (Value(SERVER, shown="NAME"),),
)


def tree() -> Command:
    """Return all commands of `mcpwrap` that are not hidden."""
    from mcpwrap.cli.main import cli  # noqa: PLC0415 - where mcpwrap is, its caller knows

    return _command(cli, ("mcpwrap",), None)


def _command(found: click.Command, path: tuple[str, ...], parent: click.Context | None) -> Command:
    context = click.Context(found, info_name=path[-1], parent=parent, **found.context_settings)
    parameters = found.get_params(context)
    below = []
    if isinstance(found, click.Group):
        names = found.list_commands(context)
        below = [(name, command) for name in names if (command := found.get_command(context, name))]
    options = [_option(p, path) for p in parameters if isinstance(p, click.Option) and not p.hidden]
    return Command(
        path,
        found.get_short_help_str(HELP_CHARS),
        (*options, *_rest_options(found)),
        tuple(_argument(p) for p in parameters if isinstance(p, click.Argument)),
        tuple(_command(c, (*path, name), context) for name, c in below if not c.hidden),
    )


def _rest_options(found: click.Command) -> Iterator[Option]:
    """Return the option that click does not know: the command line of a program is behind it."""
    from mcpwrap.cli.tools.next_version import DiffCommand  # noqa: PLC0415 - as above

    if isinstance(found, DiffCommand):
        program = Value(PROGRAM, shown="COMMAND", is_repeated=True)
        yield Option(("--next",), "Compare with a next version, by its command.", program)


def _option(option: click.Option, path: tuple[str, ...]) -> Option:
    names = tuple(sorted((*option.opts, *option.secondary_opts), key=len))
    if option.is_flag or option.count:
        return Option(names, option.help or "")
    kinds = [KIND_OF_OPTION.get(key) for key in ((names[-1],), (path[-1], names[-1]))]
    shown = option.metavar or names[-1].lstrip("-").upper()
    value = _value(option.type, next(filter(None, kinds), TEXT), shown)
    return Option(names, option.help or "", value, option.multiple)


def _argument(argument: click.Argument) -> Value:
    name = argument.name or ""
    shown = name.strip("_").upper()
    if name == "rule":
        from mcpwrap.core.policy.default_policy import short_names  # noqa: PLC0415 - as above
        from mcpwrap.machine.default_policy import shipped  # noqa: PLC0415 - as above

        return Value(choices=short_names(shipped.load()), shown=shown)
    # A new argument is an error here until the table has it.
    is_typed = isinstance(argument.type, click.Choice | click.Path)
    kind = TEXT if is_typed else KIND_OF_ARGUMENT[name]
    return _value(argument.type, kind, shown, is_repeated=argument.nargs == -1)


def _value(of: click.ParamType, kind: str, shown: str, *, is_repeated: bool = False) -> Value:
    if isinstance(of, click.Choice):
        return Value(choices=tuple(map(str, of.choices)), shown=shown, is_repeated=is_repeated)
    return Value(FILE if isinstance(of, click.Path) else kind, (), shown, is_repeated)


# --------------------------------------------------------------------------- bash
def bash_table(roots: Iterable[Command]) -> str:
    """Return the branches of `case` by the words of a command."""
    return "".join(_bash_branch(command) for root in roots for command in root.every())


def _bash_branch(command: Command) -> str:
    names = [name for option in command.options for name in option.names]
    values = [
        f"{name}:{_one_word(option.value)}"
        for option in command.options
        for name in option.names
        if option.value
    ]
    lists = {
        "commands": [below.path[-1] for below in command.commands],
        "options": names,
        "values": values,
        "arguments": [_one_word(value) + "*" * value.is_repeated for value in command.arguments],
    }
    lines = "".join(f"        {name}='{' '.join(words)}'\n" for name, words in lists.items())
    return f"    '{' '.join(command.path)}')\n{lines}        ;;\n"


def _one_word(value: Value) -> str:
    """Return the kind of a value, or `=` and what it may be: `=config|policy`."""
    return f"={'|'.join(value.choices)}" if value.choices else value.kind


# --------------------------------------------------------------------------- fish
def fish_table(roots: Iterable[Command]) -> str:
    """Return the branches of `switch` by the words of a command; the summaries follow tabs."""
    return "".join(_fish_branch(command) for root in roots for command in root.every())


def _fish_branch(command: Command) -> str:
    spelled = [(name, option) for option in command.options for name in option.names]
    valued = [(name, option.value) for name, option in spelled if option.value]
    lists = {
        "commands": [f"{below.path[-1]}\t{below.summary}" for below in command.commands],
        "options": [f"{name}\t{option.summary}" for name, option in spelled],
        "valued": [name for name, _ in valued],
        "kinds": [_one_word(value) for _, value in valued],
        "arguments": [_one_word(value) + "*" * value.is_repeated for value in command.arguments],
    }
    lines = "".join(
        f"            set {name} {' '.join(map(_quoted_for_fish, words))}\n"
        for name, words in lists.items()
        if words
    )
    return f"        case '{' '.join(command.path)}'\n{lines}"


def _quoted_for_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --------------------------------------------------------------------------- zsh
ZSH_ACTIONS = {
    FILE: "_files",
    SERVER: "_mcpwrap_servers",
    SECRET: "_mcpwrap_secrets",
    TEXT: " ",
}


def zsh_table(roots: Iterable[Command]) -> str:
    """Return a function for each command, which describes it to `_arguments`."""
    return "\n".join(_zsh_function(command) for root in roots for command in root.every())


def _zsh_function(command: Command) -> str:
    specs = [spec for option in command.options for spec in _zsh_options(option)]
    if command.commands:
        specs += ["1: :->command", "*:: :->rest"]
    else:
        specs += [spec for value in command.arguments for spec in _zsh_arguments(value)]
    name = _zsh_name(command)
    lines = [f"{name}() {{"]
    if command.commands:
        lines.append("  local curcontext=$curcontext state line ret=1")
        lines.append("  local -a commands")
        lines.append("  _arguments -s -S -C \\")
    else:
        lines.append("  _arguments -s -S \\")
    lines += [f"    {_quoted(spec)} \\" for spec in specs]
    lines[-1] = lines[-1].removesuffix(" \\")
    if command.commands:
        lines[-1] += " && ret=0"
        lines += _zsh_choice(command)
    return "\n".join([*lines, "}", ""])


def _zsh_choice(command: Command) -> Iterator[str]:
    yield "  case $state in"
    yield "    command)"
    yield "      commands=("
    for below in command.commands:
        yield f"        {_quoted(f'{below.path[-1]}:{below.summary}')}"
    yield "      )"
    yield "      _describe -t commands command commands && ret=0"
    yield "      ;;"
    yield "    rest)"
    yield "      case $words[1] in"
    for below in command.commands:
        yield f"        {below.path[-1]}) {_zsh_name(below)} && ret=0 ;;"
    yield "      esac"
    yield "      ;;"
    yield "  esac"
    yield "  return ret"


def _zsh_name(command: Command) -> str:
    """Return `__mcpwrap__secret__set`: the script's own functions begin with one `_`."""
    return "__" + "__".join(word.replace("-", "_") for word in command.path)


def _zsh_options(option: Option) -> Iterator[str]:
    summary = _escaped(option.summary, "\\[]:")
    for name in option.names:
        others = f"({' '.join(option.names)})" if not option.is_repeated else "*"
        equals = "" if option.value is None else "=" if name.startswith("--") else "+"
        value = "" if option.value is None else _zsh_of_option(option.value)
        if option.value and option.value.kind == PROGRAM:
            equals = ""
        yield f"{others}{name}{equals}[{summary}]{value}"


def _zsh_of_option(value: Value) -> str:
    shown = _escaped(value.shown, "\\:")
    return f":*:::{shown}:_normal" if value.kind == PROGRAM else f":{shown}:{_zsh_action(value)}"


def _zsh_arguments(value: Value) -> Iterator[str]:
    shown = _escaped(value.shown, "\\:")
    if value.kind == PROGRAM:
        yield f"(-)1:{shown}:_command_names -e"
        yield "*::argument:_mcpwrap_program"
    else:
        yield f"{'*' * value.is_repeated}:{shown}:{_zsh_action(value)}"


def _zsh_action(value: Value) -> str:
    return f"({' '.join(value.choices)})" if value.choices else ZSH_ACTIONS[value.kind]


def _escaped(text: str, characters: str) -> str:
    return "".join(f"\\{c}" if c in characters else c for c in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --------------------------------------------------------------------------- files
def files(zsh_folder: str) -> dict[str, str]:
    """Return the content of each file, by its path below `/usr/share`.

    `zsh_folder` is the folder of zsh's functions: `vendor-completions`, or `site-functions`.
    """
    roots = (tree(), STUB)
    tables = {"bash": bash_table(roots), "zsh": zsh_table(roots), "fish": fish_table(roots)}
    scripts = {shell: _script(f"mcpwrap.{shell}", table) for shell, table in tables.items()}
    # Shells look for a file of the command's name.
    return {
        "bash-completion/completions/mcpwrap": scripts["bash"],
        "bash-completion/completions/mcpwrap-connect": '. "${BASH_SOURCE[0]%-connect}"\n',
        f"zsh/{zsh_folder}/_mcpwrap": scripts["zsh"],
        "fish/vendor_completions.d/mcpwrap.fish": scripts["fish"],
        "fish/vendor_completions.d/mcpwrap-connect.fish": "source (status dirname)/mcpwrap.fish\n",
    }


def _script(name: str, table: str) -> str:
    before, after = (SHELLS / name).read_text().split(MARK)
    return before + table + after


def main(share: Path) -> None:
    """Write the files below a folder such as `~/.local/share`."""
    for name, text in files("site-functions").items():
        path = share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
