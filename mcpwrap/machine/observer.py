"""Observed state and configuration of this machine. Reads only; root sees the packet rules too."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from mcpwrap.config.model import Config, RemoteServer, Server
from mcpwrap.config.parse import MAX_FILE_BYTES, SourceFile, parse
from mcpwrap.core.names import OAUTH_KEY, is_slot_name
from mcpwrap.core.wire import listener_file
from mcpwrap.core.wire.listener_file import Listener
from mcpwrap.core.wire.panic_file import Panic
from mcpwrap.core.wire.panic_file import decode as decode_panic
from mcpwrap.core.wire.server_files import AccessList, decode_access_list
from mcpwrap.errors import McpwrapError, UsageError
from mcpwrap.linux import accounts
from mcpwrap.linux.root_files import (
    expect_roots_file,
    expect_roots_folder,
    expect_roots_secret,
    read_roots_own,
    temporary,
)
from mcpwrap.linux.systemd import systemctl
from mcpwrap.machine import nft_table, secret_index_file
from mcpwrap.machine.policy_files import gone
from mcpwrap.plan import paths
from mcpwrap.plan.desired import Ids
from mcpwrap.plan.observed import Applied, Observed
from mcpwrap.plan.registry import Registry, decode


def config_files(added: Mapping[str, str] | None = None) -> list[SourceFile]:
    """Return the configuration of this machine, only root's own files.

    `added` has texts by path, which are added to it or replace files of it.

    Raises:
        UsageError: there is no configuration, or an account other than root can write to it.
    """
    new = added or {}
    with suppress(FileNotFoundError):  # also checked when it is empty: a file may have been removed
        expect_roots_folder(paths.CONFIG_DIR)
    there = [n for n in (paths.CONFIG_FILE, *_glob(f"{paths.CONFIG_DIR}/*.toml")) if n not in new]
    try:
        found = [SourceFile(n, read_roots_own(n, max_bytes=MAX_FILE_BYTES)) for n in there]
        return [*found, *(SourceFile(name, text.encode()) for name, text in new.items())]
    except FileNotFoundError as error:
        raise UsageError(
            "no such file; nothing was changed",
            where=str(error.filename),
            fix="write one: `man mcpwrap.toml` shows how",
            code="E-CONFIG-NO-FILE",
        ) from error


def expect_roots_own() -> None:
    """Refuse root's files if other accounts could change them, as far as the caller may look.

    Raises:
        UsageError: with the first such file or folder, and its mode.
    """
    for folder in paths.FOLDERS:
        with suppress(FileNotFoundError, PermissionError):
            expect_roots_folder(folder)
    for path in (*_our_files(), *paths.OTHER_FILES, *_glob(f"{paths.CAS}/*/*.pem")):
        with suppress(FileNotFoundError, PermissionError):
            expect_roots_file(path)
    for path in (*paths.SECRET_FILES, *_glob(f"{paths.SEALED}/*/*")):
        with suppress(FileNotFoundError, PermissionError):
            expect_roots_secret(path)


def vanished_policies() -> dict[str, tuple[str, ...]]:
    """Return the policy files that are gone without an `apply` since, by server."""
    text = _text(paths.ACCESS_LIST)
    try:
        admissions = AccessList() if text is None else decode_access_list(text)
    except msgspec.MsgspecError:  # an access list that cannot be read admits no account
        return {}
    found = {n: gone(admission.policy) for n, admission in admissions.by_server.items()}
    return {name: files for name, files in found.items() if files}


def has_configuration() -> bool:
    """Return whether there is a configuration; a new machine has no file of it."""
    return os.path.lexists(paths.CONFIG_FILE) or bool(_glob(f"{paths.CONFIG_DIR}/*.toml"))


def registry() -> Registry:
    """Return the registry of this machine; a new machine has an empty one."""
    text = _text(paths.REGISTRY)
    return Registry() if text is None else decode(text)


def server_names() -> list[str]:
    """Return the names of all servers that were applied."""
    found = registry().by_name.items()
    return [n for n, a in found if not a.is_retired and not is_slot_name(n)]


def listeners() -> list[Listener]:
    """Return the listeners that were applied, in the order of servers and agents."""
    found = {p: text for p in _glob(paths.listener("*")) if (text := _text(p)) is not None}
    return sorted(
        (_listener(path, text) for path, text in found.items()),
        key=lambda each: (each.server, each.uid, each.url_name),
    )


def _listener(path: str, text: str) -> Listener:
    try:
        return listener_file.decode(text.encode())
    except msgspec.MsgspecError as error:
        raise McpwrapError(
            f"damaged: {error}",
            where=path,
            fix="`sudo mcpwrap apply`",
            code="E-HTTP-LISTENER-FILE",
        ) from error


def panic() -> Panic:
    """Return the state of the emergency stop."""
    found = Panic()
    for path in (paths.PANIC_NOW, paths.PANIC):
        with suppress(FileNotFoundError):
            found = found.merged(decode_panic(Path(path).read_bytes()))
    return found


def declared_secrets() -> dict[tuple[str, str], str]:
    """Return the exposure level of each secret of the configuration, by server and key."""
    found = {}
    for name, server in parse(config_files()).servers.items():
        for key in server.secrets():
            found[name, key] = _exposure(server, key)
    return found


def _exposure(server: Server, key: str) -> str:
    is_file = key in server.secret_files or isinstance(server.runs, RemoteServer)
    is_made = key == OAUTH_KEY or server.uses_local_worker()
    by = ", made by mcpwrap" if is_made else ""
    return f"L1 file{by}" if is_file else f"L2 variable{by}"


def ids(config: Config) -> Ids:
    """Return the UIDs and GIDs of all agents in the configuration that exist on this machine."""
    names = {agent for server in config.servers.values() for agent in server.agents}
    uids = {n: uid for n in names if (uid := accounts.uid_of(n)) is not None}
    groups = {n[1:] for n in names if n.startswith("@")}
    return Ids(
        uids,
        {n: gid for n in groups if (gid := accounts.gid_of(n)) is not None},
        {n: accounts.uids_in(n) for n in groups},
    )


def observe() -> Observed:
    """Return the observed state of this machine."""
    links = {path: str(Path(path).readlink()) for path in _glob(paths.link("*"))}
    loaded = systemctl.loaded_instances()
    on_disk = {Path(path).stem for path in _glob(paths.spec("*"))}
    loaded_listeners, loaded_jobs = systemctl.loaded_listeners(), systemctl.loaded_jobs()
    units = systemctl.properties(
        [
            *(unit for name in loaded | on_disk for unit in _units(name)),
            *(unit for instance in loaded_listeners for unit in _listener_units(instance)),
            *(unit for instance in loaded_jobs for unit in _job_units(instance)),
        ],
        ["ActiveState", "UnitFileState", "NeedDaemonReload"],
    )
    files = {path: text for path in _our_files() if (text := _text(path)) is not None}
    states = [Path(path) for path in _glob(f"{paths.STATES}/*")]
    return Observed(
        files=files,
        links=links,
        uid_by_account=accounts.ours(),
        listening=frozenset(
            n for n in loaded | on_disk if _is_listening(units, paths.socket_unit(n))
        ),
        loaded_units=loaded,
        open_listeners=frozenset(
            i for i in loaded_listeners if _is_listening(units, paths.listener_socket(i))
        ),
        loaded_listeners=loaded_listeners,
        open_jobs=frozenset(i for i in loaded_jobs if _is_listening(units, paths.job_socket(i))),
        loaded_jobs=loaded_jobs,
        has_stale_units=any(unit["NeedDaemonReload"] == "yes" for unit in units.values()),
        elements=nft_table.elements() if os.geteuid() == 0 else None,
        authorities=frozenset(Path(p).parent.name for p in _glob(paths.ca_bundle("*"))),
        serving=_serving(),
        caches=frozenset(Path(path).name for path in _glob(f"{paths.CACHES}/*")),
        applied=_applied(files.get(paths.APPLIED, "{}")),
        states=frozenset(path.name for path in states),
        leftovers=_leftovers(),
        kept_secrets=frozenset(secret_index_file.read().by_server),
        shut_states=frozenset(path.name for path in states if path.lstat().st_uid == 0),
    )


def _applied(text: str) -> Applied:
    """Return the applied state; it is empty if its file cannot be parsed."""
    try:
        return msgspec.json.decode(text, type=Applied)
    except msgspec.MsgspecError:
        return Applied()


def _our_files() -> list[str]:
    fixed = [paths.REGISTRY, paths.APPLIED, paths.ACCESS_LIST, paths.ELEMENTS, paths.FRONT]
    fixed += [paths.WEBHOOK, paths.WORKER]
    fixed += [paths.WORKER_SOCKET_DROP_IN, paths.WORKER_SERVICE_DROP_IN]
    templates = (
        paths.spec, paths.sysusers, paths.drop_in, paths.resolv_conf, paths.proxy, paths.listener,
        paths.listener_drop_in, paths.job_drop_in,
    )  # fmt: skip
    return fixed + [path for template in templates for path in _glob(template("*"))]


def _leftovers() -> frozenset[str]:
    """Return the temporary files of writes that a kill or a power failure interrupted."""
    found = [path for pattern in paths.REPLACED for path in _glob(temporary(pattern))]
    return frozenset(path for path in found if not Path(path).is_dir() or Path(path).is_symlink())


def _serving() -> frozenset[str]:
    """Return the units of egress, webhook and worker that run and start at boot."""
    written = paths.names_in(_glob(paths.proxy("*")), paths.proxy)
    units = {paths.proxy_unit(instance) for instance in written} | systemctl.loaded_squids()
    units |= {paths.FRONT_UNIT, paths.WEBHOOK_UNIT, paths.WORKER_UNIT}
    shown = systemctl.properties(units, ["ActiveState", "UnitFileState"])
    return frozenset(
        unit
        for unit, found in shown.items()
        if (found["ActiveState"], found["UnitFileState"]) == ("active", "enabled")
    )


def _units(name: str) -> tuple[str, str]:
    return paths.socket_unit(name), paths.service_unit(name)


def _listener_units(instance: str) -> tuple[str, str]:
    return paths.listener_socket(instance), paths.listener_service(instance)


def _job_units(instance: str) -> tuple[str, str]:
    return paths.job_socket(instance), paths.job_service(instance)


def _is_listening(units: dict[str, dict[str, str]], socket: str) -> bool:
    unit = units.get(socket, {})
    return unit.get("ActiveState") == "active" and unit.get("UnitFileState") == "enabled"


def _text(path: str) -> str | None:
    try:  # that a file is damaged, its parser reports
        return Path(path).read_text(encoding="utf-8", errors="backslashreplace")
    except FileNotFoundError:
        return None


def _glob(pattern: str) -> list[str]:
    return sorted(map(str, Path("/").glob(pattern.lstrip("/"))))
