"""Parser of the table of a server that is a program of this machine (`command`)."""

from collections.abc import Iterable, Iterator

from mcpwrap.config import value_parsers
from mcpwrap.config.file_types.config_file import ProgramTable, UrlTable
from mcpwrap.config.file_types.fields import keys_of
from mcpwrap.config.model import Local, Server
from mcpwrap.config.toml_table import TomlTableReader
from mcpwrap.core.mount_layout import is_below
from mcpwrap.core.project import PROJECT_REFERENCE, is_in, names_project

# Settings of a program's table that no other kind of server has, but the command.
TABLE_KEYS = tuple(key for key in keys_of(ProgramTable) if key not in {"command", "mcpwrap"})
_DEFAULTS = Server(name="", runs=Local(command=""), transparent=False)  # of other kinds


def read(reader: TomlTableReader) -> Local:
    """Return the command, its arguments, folder and environment."""
    env = reader.table("env")
    names = env.valid_names(value_parsers.variable)
    local = Local(
        command=reader.one("command", _command, ""),
        args=reader.many("args", value_parsers.argument),
        cwd=reader.one("cwd", value_parsers.absolute_path, ""),
        env={name: env.one(name, value_parsers.template, ()) for name in names},
        inherits=reader.many("inherits", value_parsers.inherited),
        inherits_any=reader.many("inherits_any", value_parsers.inherited_any),
    )
    for name in sorted(set(local.inherits) & set(local.inherits_any)):
        reader.note(
            "inherits_any",
            f"{name} is also in `inherits`",
            "keep one of the two",
            code="E-CONFIG-DUPLICATE",
        )
    return local


def changed_settings(server: Server, keys: Iterable[str]) -> Iterator[str]:
    """Yield the settings among these that a server of another kind does not leave at its default.

    They would have no effect, and their author relies on them.
    """
    return (key for key in keys if getattr(server, key) != getattr(_DEFAULTS, key))


def expect_each_file_to_be_a_secret(server: Server, ours: TomlTableReader) -> None:
    """Note an entry of `secret_files` that no variable refers to: it would have no effect."""
    for key in sorted(set(server.secret_files) - server.secrets()):
        ours.note(
            "secret_files",
            f"no variable refers to {key}",
            f'write `env = {{ X = "${{{key}}}" }}`',
            code="E-SECRET-UNREFERENCED",
        )


def expect_sound_projects(
    server: Server, runs: Local, reader: TomlTableReader, ours: TomlTableReader
) -> None:
    """Note settings about the session's project that contradict each other."""
    if server.projects and runs.cwd:
        reader.note(
            "cwd",
            "with `projects` a server starts in its agent's folder",
            "remove `cwd`, or `projects` in the table below",
            code="E-CONFIG-PROJECT-CWD",
        )
    if names_project(runs.args) and not server.projects:
        reader.note(
            "args",
            f"has {PROJECT_REFERENCE}, and the server has no `projects`",
            'write `projects = ["/home/alice/src:rw"]` in the table `mcpwrap` below',
            code="E-CONFIG-PROJECT-ARGS",
        )
    folders = [folder.path for folder in server.projects]
    for path in folders:
        if any(is_below(path, other) for other in folders):
            ours.note(
                "projects", f"{path} is in another of them", "keep one of the two",
                code="E-CONFIG-DUPLICATE",
            )  # fmt: skip
    for workspace in server.workspace:
        if any(workspace.path == path or is_below(path, workspace.path) for path in folders):
            ours.note(
                "workspace",
                f"{workspace.path} shows each project to all sessions",
                "keep it in one of `workspace` and `projects`",
                code="E-CONFIG-PROJECT-WORKSPACE",
            )


def read_urls(reader: TomlTableReader) -> dict[str, str]:
    """Return the project of each further URL, by its name."""
    found = {}
    for name in reader.valid_names(value_parsers.url_name):
        url = reader.table(name)
        found[name] = url.one("project", value_parsers.absolute_path, "")
        url.finish(keys_of(UrlTable))
    return found


def expect_sound_urls(server: Server, ours: TomlTableReader) -> None:
    """Note a further URL that no agent has, or whose project is in no listed folder."""
    table = ours.table("http")
    for name, path in server.http.items():
        if not server.speaks_http():
            problem, fix = "agents have no URL of this server", 'write `expose = "http"`'
        elif not any(is_in(path, folder.path) for folder in server.projects):
            problem, fix = f"{path or 'no path'} is in no folder of `projects`", "list it there"
        else:
            continue
        table.table(name).note("project", problem, fix, code="E-CONFIG-PROJECT-URL")


def _command(value: str) -> str:
    if not value.startswith("/"):
        raise value_parsers.BadValueError(
            f"{value!r} is not an absolute path, and no PATH is searched",
            "write the absolute path, which `command -v` prints",
            code="E-CONFIG-COMMAND",
        )
    return value_parsers.absolute_path(value)
