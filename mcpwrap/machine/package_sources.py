"""Package registries of this machine: as root configured npm and pip, else their own defaults.

`apply` reads them as root, so only root's files count, and no tool runs another account's code.
"""

import configparser
import glob
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from mcpwrap.config.model import Destination
from mcpwrap.config.value_parsers import BadValueError, destination
from mcpwrap.core.distribution import Distribution
from mcpwrap.errors import UsageError
from mcpwrap.linux.root_files import read_of_root
from mcpwrap.plan.egress.server_egress import PackageSource

_MAX_BYTES = 256 * 1024  # npm 11 has its default 70 KiB deep
# npm-config(1): the global file is below npm's prefix, which distributions set to /usr or /.
_NPMRC = ("/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc")
# pip's user guide, "Configuration"; the file that overrides the other comes first.
_PIP_CONF = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf")
_IN_NPMRC = re.compile(r"^[ \t]*registry[ \t]*=[ \t]*[\"']?([^\s\"';#]*)", re.MULTILINE)
_IN_NPM = re.compile(r"\('registry', \{\s*default: '([^']+)'")
_IN_PIP = re.compile(r"PackageIndex\(\s*\"https://([^\"/]+)/\",\s*file_storage_domain=\"([^\"]+)\"")
# Without `$`: the tools would insert a variable, whose value is not known here.
_URL = re.compile(
    r"https://(?:[^/?#]*@)?(?P<place>[^/?#@*]+)(?P<path>(?:/[A-Za-z0-9._~%!&()+,;=:@/-]*)?)([?#].*)?"
)
# A folder that servers see, and a name that needs no quoting in a URL or a list.
_FOLDER = re.compile(r"/(?:opt|srv|usr)(?:/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)+")
_YES = frozenset({"1", "on", "t", "true", "y", "yes"})  # as pip reads a flag


def found(distribution: Distribution) -> dict[str, PackageSource]:
    """Return the source of each package group that this machine configures."""
    sources = {}
    with suppress(UsageError):
        sources["npm"] = npm(map(_text, _NPMRC), map(_text, _existing(distribution.npm_defaults)))
    with suppress(UsageError):
        sources["pypi"] = pypi(
            map(_text, _PIP_CONF), map(_text, _existing(distribution.pip_defaults))
        )
    return {name: source for name, source in sources.items() if source}


def npm(npmrcs: Iterable[str], definitions: Iterable[str]) -> PackageSource | None:
    """Return npm's registry, from the first of these texts that names one; None if it is unusable.

    A setting that cannot be used is not skipped: the next one would be the public registry.
    """
    for text in npmrcs:
        if urls := _IN_NPMRC.findall(text):
            return _npm_at(urls[-1])  # as npm does
    for text in definitions:
        if default := _IN_NPM.search(text):
            return _npm_at(default[1])
    return None


def pypi(pip_confs: Iterable[str], indexes: Iterable[str]) -> PackageSource | None:
    """Return pip's index in the same way, or the folder of wheels that stands in for one.

    Its default needs no variables: uv has the same.
    """
    for text in pip_confs:
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(text)
        except configparser.Error:
            return None  # pip does not start with it either
        given = dict(parser["global"]) if "global" in parser else {}
        options = {name.replace("_", "-"): value for name, value in given.items()}
        if options.get("no-index", "").lower() in _YES:
            return _wheels_in(options.get("find-links", "").strip())
        if "index-url" in options:
            return _at(options["index-url"], "PIP_INDEX_URL", "UV_DEFAULT_INDEX")
    for text in indexes:
        if default := _IN_PIP.search(text):
            hosts = [host for group in default.groups() if (host := _host(group))]
            return PackageSource(tuple(hosts))
    return None


def _wheels_in(folder: str) -> PackageSource | None:
    """Return a folder of wheels as source, which needs no host."""
    if not _FOLDER.fullmatch(folder):
        return None
    variables = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": folder,
        "UV_FIND_LINKS": folder,
        # uv has no variable for "no index". As an index this folder has no projects.
        "UV_DEFAULT_INDEX": f"file://{folder}",
    }
    return PackageSource((), variables)


def _npm_at(url: str) -> PackageSource | None:
    source = _at(url, "npm_config_registry")
    if source is None:
        return None
    variables = {**source.variables, "npm_config_update_notifier": "false"}
    return PackageSource(source.hosts, variables)


def _at(url: str, *names: str) -> PackageSource | None:
    """Return a source without user, password and query: every account can read the variables."""
    parts = _URL.fullmatch(url)
    host = _host(parts["place"].lower()) if parts else None
    if parts is None or host is None:
        return None
    return PackageSource((host,), dict.fromkeys(names, f"https://{parts['place']}{parts['path']}"))


def _host(place: str) -> Destination | None:
    try:
        return destination(place)
    except BadValueError:
        return None


def _existing(patterns: Iterable[str]) -> Iterator[str]:
    """Yield the files that match, in the order of the patterns."""
    for pattern in patterns:
        yield from sorted(glob.glob(pattern))  # noqa: PTH207 - a pattern from the root


def _text(path: str) -> str:
    """Return the text of root's file; "" if it does not exist.

    Raises:
        UsageError: an account other than root could have written it.
    """
    try:
        return read_of_root(path, max_bytes=_MAX_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""
