"""Mount namespace of a session: of the folders in `projects` it shows the session's project alone.

It is made by the session's process before its sandbox is closed: in a Landlock domain no mount is
allowed. The process has all capabilities in its user namespace, and loses them by execve(2), since
its UID is not 0 there. Source: mount_namespaces(7), user_namespaces(7).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpwrap.as_wrapper.project import lookup
from mcpwrap.as_wrapper.project.lookup import ProjectQuery
from mcpwrap.core.mount_layout import (
    MountKind,
    WorkspaceMount,
    held_in_project,
    is_below,
    layers,
    leads_to_workspace,
    of_project,
)
from mcpwrap.core.project import MARKERS, NoProjectError, Project
from mcpwrap.core.text.sanitise import visible
from mcpwrap.core.wire.server_files import Folder, Workspaces
from mcpwrap.errors import McpwrapError
from mcpwrap.linux.isolation import namespaces, prctl
from mcpwrap.linux.isolation.namespaces import NamespaceFlag
from mcpwrap.linux.mount import held_names, mount_api, mountinfo
from mcpwrap.linux.mount.mount_api import Attribute
from mcpwrap.linux.process.signal_fd import CreatedNames

# Of each session its own, unlike in a wrapper without `projects`: by these a server could pass on
# what it has read in one project to another. With the sizes of units/mcpwrap@.service.
_TEMPORARY = {"/tmp": "256M", "/var/tmp": "256M", "/dev/shm": "64M"}  # noqa: S108 - mounted


class ViewReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of `show`, from a session's process to its supervisor."""

    project: Project | None = None
    why: str = ""  # there is no project
    folder_by_watch: dict[int, str] = {}  # of the inotify descriptor beside it


@dataclass(frozen=True, slots=True)
class ShownProject:
    """Project as shown, with descriptors by which changes of its mounts are noticed."""

    report: ViewReport
    fds: tuple[int, ...] = ()  # mountinfo of the namespace, inotify of created names


def enter() -> None:
    """Enter a new mount namespace, whose mounts no other namespace sees.

    Raises:
        OSError: this machine does not let the account make namespaces.
    """
    prctl.allow_dumps()  # for an instant; Landlock keeps other sessions' servers from it
    try:
        namespaces.part(NamespaceFlag.USER | NamespaceFlag.MOUNTS)
    finally:
        prctl.forbid_dumps()
    namespaces.make_private()
    for path, size in _TEMPORARY.items():
        mount_api.attach_temporary_folder(path, size)
    prctl.drop_capabilities()  # of programs that are started later


def show(server: str, wanted: ProjectQuery | str, workspaces: Workspaces) -> ShownProject:
    """Empty the folders of `projects`, but for the project; `wanted` may be why there is none.

    Raises:
        OSError: the kernel refused; the process must not go on.
    """
    if isinstance(wanted, str):
        return _nothing(workspaces, wanted)
    try:
        with lookup.found(server, wanted, workspaces) as (project, fd):
            return _shown(project, fd, workspaces)
    except NoProjectError as error:
        return _nothing(workspaces, str(error))
    except McpwrapError as error:
        why = f"{error.problem}; {error.fix} [{error.code}]"
        return _nothing(workspaces, why)


def _nothing(workspaces: Workspaces, why: str) -> ShownProject:
    for tree in _trees(workspaces, ""):
        tree.attach()
    return ShownProject(ViewReport(why=why))


@dataclass(frozen=True, slots=True)
class _Tree:
    """Mount, with all mounts in it, that is not attached yet."""

    path: str
    fd: int

    def attach(self) -> None:
        target_fd = mount_api.open_path(self.path)
        mount_api.attach(self.fd, target_fd)
        os.close(target_fd)
        os.close(self.fd)


def _shown(project: Project, fd: int, workspaces: Workspaces) -> ShownProject:
    """Show the project at its own path, with its held names read-only.

    Raises:
        McpwrapError: a held name could be written by another path.
        NoProjectError: names in it that are held once they exist would not be noticed.
    """
    own = of_project(workspaces, Folder(project.path, project.is_writable))
    markers = MARKERS if project.is_writable else ()  # without one, the next project is wider
    pins = [WorkspaceMount(f"{project.path}/{marker}", MountKind.PIN) for marker in markers]
    names = [each for each in layers(own) if each.kind in (MountKind.PIN, MountKind.HOLD)]
    found = held_names.existing((*names, *pins), project.path, fd)
    there = list(dict.fromkeys(found))  # with `protect`, the markers are pinned already
    links = held_names.links_of(there)  # while siblings, to which links may lead, can be seen
    for path, link in links.link_by_end.items():
        if leads_to_workspace(workspaces, path):
            why = f"{visible(link)} leads to a workspace, in which it cannot be held"
            raise NoProjectError(f"{why}: replace it with a file or folder, or remove it")
    tree = _Tree(project.path, mount_api.copied_with_mounts_below(fd))
    for other in _trees(workspaces, project.path):
        other.attach()
    tree.attach()
    for layer in held_in_project(own, there):
        held_names.hold(layer)
    held_names.expect_no_other_path(own, there, links)
    held = held_in_project(own, layers(own))
    parents = {layer.path.rpartition("/")[0] for layer in held}
    try:
        created = CreatedNames.watched(parents)
    except OSError as error:  # the server could make names there that are not noticed
        why = f"new names in {error.filename or project.path} cannot be watched: {error.strerror}"
        raise NoProjectError(why) from error
    changes_fd = os.open(mountinfo.PATH, os.O_RDONLY | os.O_CLOEXEC)
    report = ViewReport(project=project, folder_by_watch=dict(created.folder_by_watch))
    return ShownProject(report, (changes_fd, created.fileno()))


def _trees(workspaces: Workspaces, project: str) -> Iterator[_Tree]:
    """Cover each list by an empty folder, with a folder for each of what it goes on to show.

    Yields what stays visible of a list beside the project: workspaces in it.
    """
    for listed in workspaces.projects:
        beside = [
            _Tree(each.path, mount_api.copied_with_mounts_below(mount_api.open_path(each.path)))
            for each in workspaces.folders
            if is_below(each.path, listed.path) and not (project and is_below(each.path, project))
        ]
        mount_api.attach_empty_folder(listed.path)
        cover_fd = mount_api.open_path(listed.path)
        for path in (project, *(tree.path for tree in beside)):
            if is_below(path, listed.path):
                Path(path).mkdir(mode=0o755, parents=True, exist_ok=True)
        mount_api.set_attributes(cover_fd, Attribute.READ_ONLY)
        os.close(cover_fd)
        yield from beside
