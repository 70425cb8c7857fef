"""Parsers of single configuration values. Each returns the value, or raises `BadValueError`."""

import ipaddress
import re
from typing import cast, get_args

from mcpwrap.config.model import (
    GROUPS,
    AllowedRequest,
    Destination,
    Direct,
    Expose,
    Group,
    SecretRef,
    Template,
    Workspace,
)
from mcpwrap.core import environment, names
from mcpwrap.core import umask as umasks
from mcpwrap.core.wire.server_files import Keep, Pins, Relay

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_KEY = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
# useradd(8), without the trailing `$` of Samba; a group has an `@` before it.
_ACCOUNT = re.compile(r"@?[a-z_][a-z0-9_.-]{0,31}")
# RFC 1123 section 2.1: letters, digits, hyphens. Names in other scripts are written as punycode.
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_URL = re.compile(r"https://(?P<host>[a-z0-9.-]{1,253})(:(?P<port>[0-9]*))?(/[!$-~]*)?")
# RFC 9110 section 9: the common methods, without CONNECT: a tunnel's content would not be judged.
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_REQUEST = re.compile(r"(?P<methods>[A-Z,*]+) (?P<host>[a-z0-9.-]{1,253})(?P<path>/[!$-~]*)")
# As paths arrive: those that a server could read in two ways are refused before the comparison.
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,=:@/-]*")
# Connections to these leave as IPv4, and each tool writes such an address differently.
_V4_MAPPED = ipaddress.ip_network("::ffff:0:0/96")
_V4_COMPATIBLE = ipaddress.ip_network("::/96")
# Egress addresses of the wrappers, addresses of the listeners, and that of the worker.
_OUR_NETS = tuple(map(ipaddress.ip_network, ("127.77.0.0/16", "127.78.0.0/16", "127.79.0.1")))
# Their values make a program run code, load a library or trust a host that the agent chose.
_STEERING = re.compile(
    r"MCPWRAP_.*|LD_.*|DYLD_.*|GCONV_PATH|LOCPATH|MALLOC_.*|GLIBC_.*|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS"
    r"|PATH|HOME|USER|LOGNAME|TMPDIR|TMP|TEMP|ENV|BASH.*|SHELLOPTS|PS4|IFS|PROMPT_COMMAND"
    r"|PYTHON.*|PIP_.*|UV_.*|VIRTUAL_ENV|NODE_.*|NPM_.*|BUN_.*|DENO_.*|ELECTRON_.*"
    r"|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|PHP.*|LUA_.*|R_.*|ERL_.*|DOTNET_.*|CLASSPATH|MAVEN_.*"
    r"|JAVA_.*|JDK_.*|_JAVA_OPTIONS|GIT_.*"
    r"|SSL.*|OPENSSL_.*|CURL_.*|AWS_CA_BUNDLE|REQUESTS_CA_BUNDLE|[A-Z]+_PROXY",
    re.IGNORECASE,
)
# These do so in some programs. No list is complete, and root may know that its server is not one.
_MAY_STEER = re.compile(
    r"NIX_.*|GTK_.*|GDK_.*|GIO_.*|GST_.*|QT_.*|QML.*|CORECLR_.*|COR_.*|JULIA_.*|TCL.*|GUILE_.*|OCAML.*"
    r"|RUST.*|CARGO_.*|GO[A-Z]+|CGO_.*|CC|CXX|[A-Z]*FLAGS|CMAKE_.*|GRADLE_.*|ANT_.*|SBT_.*"
    r"|LESS.*|.*PAGER|.*EDITOR|VISUAL|.*BROWSER|SHELL|.*_ASKPASS|SUDO_.*|SVN_.*|HG.*|RSYNC_.*"
    r"|SSH_.*|XDG_.*|DBUS_.*|XAUTHORITY|TERMINFO.*|TERMCAP|NLSPATH|TZDIR|INPUTRC|MANPATH|EMACS.*|VIM.*"
    r"|KUBE.*|HELM_.*|DOCKER_.*|AWS_.*|AZURE_.*|GOOGLE_.*|CLOUDSDK_.*|KRB5.*|ODBC.*|PG[A-Z]+|MYSQL_.*"
    r"|LIBGL_.*|MESA_.*|VK_.*|OCL_.*|CUDA_.*|OMP_.*|HF_.*|.*_CONFIG(_.*)?|.*_(HOME|PATH|DIR)",
    re.IGNORECASE,
)
# Folders of the system, of servers, or of all accounts. A workspace is not one of these or in one.
_NO_WORKSPACE = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root",
    "/run", "/sbin", "/sys", "/usr", "/var/lib/mcpwrap", "/var/lock", "/var/log", "/var/run",
    "/tmp", "/var/tmp",  # noqa: S108
)  # fmt: skip
MAX_TEXT_CHARS = 32 * 1024


class BadValueError(ValueError):
    """Wrong value, with its fix: the second argument is what to write instead."""

    def __init__(self, problem: str, fix: str, *, code: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix
        self.code = code  # the name in mcpwrap-errors(7)


def plain_text(value: str) -> str:
    """Parse the text of an argument or a variable: without NUL, at most MAX_TEXT_CHARS long."""
    if "\0" in value or len(value) > MAX_TEXT_CHARS:
        raise BadValueError(
            "a NUL or over 32 768 characters", "shorten it, or use a file", code="E-CONFIG-TEXT"
        )
    return value


def argument(value: str) -> str:
    """Parse one argument of the command, in which only the session's project is a reference."""
    if any(key != names.PROJECT for key in _REFERENCE.findall(value)):
        raise BadValueError(
            "a secret in an argument can be read by every account of the machine",
            "pass it as a variable in `env`, or as a file with `secret_files`",
            code="E-SECRET-IN-ARGUMENT",
        )
    return plain_text(value)


def absolute_path(value: str) -> str:
    """Parse an absolute path in its shortest form: no `.`, `..`, `//` or slash at the end."""
    plain_text(value)
    parts = value.split("/")[1:] if value != "/" else []
    if not value.startswith("/"):
        raise BadValueError(
            f"{value!r} is not an absolute path", "start the path with `/`", code="E-CONFIG-PATH"
        )
    if any(part in {"", ".", ".."} for part in parts):
        raise BadValueError(
            f"{value!r} is not in its shortest form",
            "remove `.`, `..`, `//` and a `/` at the end",
            code="E-CONFIG-PATH",
        )
    return value


def variable(value: str) -> str:
    """Parse the name of an environment variable."""
    if not _VARIABLE.fullmatch(value):
        raise BadValueError(
            f"{value!r} is not a variable name", "use A-Z, 0-9 and _", code="E-CONFIG-VARIABLE"
        )
    return value


def inherited(value: str) -> str:
    """Parse the name of a variable of a kind that any agent may choose."""
    if environment.kind_of(inherited_any(value)):
        return value
    kinds = ", ".join(environment.KINDS)
    steers = ", and can decide which code runs or where data goes" if may_steer(value) else ""
    raise BadValueError(
        f"{value} is not of a kind that any agent may choose ({kinds}){steers}",
        "set it in `env`; or list it in `inherits_any`, and `plan` names it each time",
        code="E-CONFIG-INHERITS-KIND",
    )


def may_steer(name: str) -> bool:
    """Return whether a variable is known to decide what some program runs, loads or reaches."""
    return _MAY_STEER.fullmatch(name) is not None


def inherited_any(value: str) -> str:
    """Parse the name of a variable whose value root may let the agent choose."""
    if _STEERING.fullmatch(variable(value)):
        raise BadValueError(
            f"{value} decides which code runs or where data goes, so no agent may set it",
            "set it in `env`, with the value you want",
            code="E-CONFIG-INHERITS-REFUSED",
        )
    return value


def secret_key(value: str) -> str:
    """Parse the name of a secret: capitals, digits and `_`, at most 64 characters."""
    if not _SECRET_KEY.fullmatch(value):
        raise BadValueError(
            f"{value!r} is not a valid secret name", "use A-Z, 0-9 and _", code="E-SECRET-NAME"
        )
    if value == names.OAUTH_KEY:
        raise BadValueError(
            f"{value} is made by mcpwrap, and cannot be set", "remove it", code="E-SECRET-RESERVED"
        )
    return value


def template(value: str) -> Template:
    """Parse `text ${KEY} text` into parts. A `${` in the value of a secret is never expanded."""
    plain_text(value)
    parts: list[str | SecretRef] = []
    for index, part in enumerate(_REFERENCE.split(value)):
        if index % 2:
            parts.append(SecretRef(secret_key(part)))
        elif "${" in part:
            raise BadValueError(
                "`${` without a closing `}`", "write `${KEY}`", code="E-SECRET-REFERENCE"
            )
        elif part:
            parts.append(part)
    return tuple(parts)


def agent(value: str) -> str:
    """Parse the name of an account, or of a group with an `@` before it."""
    if not _ACCOUNT.fullmatch(value):
        raise BadValueError(
            f"{value!r} is not an account or @group",
            'write `"alice"` or `"@group"`',
            code="E-CONFIG-AGENT",
        )
    if value == "root":
        raise BadValueError(
            "root cannot be an agent", "run it under another account", code="E-CONFIG-AGENT-ROOT"
        )
    return value


def destination(value: str) -> Destination:
    """Parse `host`, `*.host`, `host:port` or `*.host:port`; the default port is 443."""
    host, colon, port = value.partition(":")
    bare = host.removeprefix("*.")
    labels = bare.split(".")
    is_name = len(bare) <= 253 and len(labels) > 1 and all(map(_LABEL.fullmatch, labels))
    if not is_name or not labels[-1][0].isalpha():  # 127.0x1 is an address to some resolvers
        raise BadValueError(
            f"{value!r} is not a host name",
            "write `api.example.com`, `*.example.org` or `host.example:8443`, in lower case",
            code="E-EGRESS-HOST",
        )
    return Destination(bare, _port(port) if colon else 443, host != bare)


def egress(value: str) -> Destination | Group:
    """Parse one entry of `egress`: a destination, or `@npm` or `@pypi`."""
    if not value.startswith("@"):
        return destination(value)
    if value[1:] not in GROUPS:
        known = ", ".join(f"`@{name}`" for name in GROUPS)
        raise BadValueError(
            f"{value!r} is not a known group", f"write {known} or a host", code="E-EGRESS-GROUP"
        )
    return Group(value[1:])


def request(value: str) -> AllowedRequest:
    """Parse `GET,HEAD api.example.com/v1/*`: methods, host and path; `*` is any text."""
    found = _REQUEST.fullmatch(value)
    if not found or not _PATH.fullmatch(found["path"]):
        raise BadValueError(
            f"{value!r} does not consist of methods, host and path",
            "write `GET,POST api.example.com/v1/*`; the path without `?`, `%` or `..`",
            code="E-EGRESS-REQUEST",
        )
    if ".." in found["path"] or "//" in found["path"]:
        raise BadValueError(
            f"{value!r} has `..` or `//` in its path", "remove them", code="E-EGRESS-REQUEST"
        )
    methods = _METHODS if found["methods"] == "*" else tuple(found["methods"].split(","))
    unknown = [method for method in methods if method not in _METHODS]
    if unknown:
        raise BadValueError(
            f"{unknown[0]!r} is not a supported method",
            f"write `*`, or some of {', '.join(_METHODS)}",
            code="E-EGRESS-REQUEST",
        )
    return AllowedRequest(methods, destination(found["host"]).host, found["path"])


def parent(value: str) -> Direct:
    """Parse the address and port of a proxy: `10.0.0.1:3128`."""
    return direct(value.removeprefix("http://"))


def direct(value: str) -> Direct:
    """Parse `10.0.0.5:5432` or `[fd00::5]:5432`: a literal address, never a name."""
    host, _, port = value.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    try:
        address = ipaddress.ip_address(host[1:-1] if is_v6 else host)
    except ValueError:
        address = None
    if address is None or (address.version == 6) != is_v6 or "%" in host:  # a zone may be any text
        raise BadValueError(
            f"{value!r} is not an address and port",
            "write `10.0.0.5:5432` or `[fd00::5]:5432`",
            code="E-EGRESS-ADDRESS",
        )
    is_v4_as_v6 = address in _V4_MAPPED or (address in _V4_COMPATIBLE and not address.is_loopback)
    is_ours = any(address in net for net in _OUR_NETS)
    if is_v4_as_v6 or is_ours or address.is_unspecified or address.is_multicast:
        raise BadValueError(
            f"{host} cannot be the address of a server",
            "write the address at which the server listens",
            code="E-EGRESS-ADDRESS-RANGE",
        )
    return Direct(str(address), _port(port))


def _port(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > 65_535:
        raise BadValueError(
            f"{text!r} is not a port", "write a number from 1 to 65535", code="E-EGRESS-PORT"
        )
    return int(text)


def workspace(value: str) -> Workspace:
    """Parse `/a/folder:rw` or `/a/folder:ro`."""
    path, _, mode = value.rpartition(":")
    if mode not in {"rw", "ro"}:
        raise BadValueError(
            f"{value!r} does not end with `:rw` or `:ro`", "append either", code="E-WORKSPACE-MODE"
        )
    path = absolute_path(path)
    if not path.isprintable():
        raise BadValueError(
            "the path has a control character", "rename the folder", code="E-WORKSPACE-PATH"
        )
    above = [folder for folder in _NO_WORKSPACE if f"{path}/".startswith(f"{folder}/")]
    if above or path == "/":
        raise BadValueError(
            f"{path} cannot be a workspace: {above[0] if above else '/'} is a system directory",
            "write a folder of an agent, such as `/home/alice/project:rw`",
            code="E-WORKSPACE-SYSTEM-DIR",
        )
    return Workspace(path, mode == "rw")


def url(value: str) -> str:
    """Parse an https URL without user, password or fragment. Source: RFC 3986, narrowed."""
    found = _URL.fullmatch(value)
    if not found or not all(map(_LABEL.fullmatch, found["host"].split("."))):
        raise BadValueError(
            f"{value!r} is not an https URL of a host",
            "write `https://host/path`, the host in lower case, without user, password or `#`",
            code="E-CONFIG-URL",
        )
    if found["port"]:
        _port(found["port"])
    return value


def server_name(value: str) -> str:
    """Parse the name of a server, after which an account and a unit are named."""
    return _unit_name(value, "is not a valid server name", code="E-CONFIG-SERVER-NAME")


def url_name(value: str) -> str:
    """Parse the name of a further URL of a server's agents, which is part of a unit's name."""
    return _unit_name(value, "is not a valid name of a URL", code="E-CONFIG-URL-NAME")


def _unit_name(value: str, message: str, *, code: str) -> str:
    if not names.is_server_name(value):
        raise BadValueError(
            message,
            "begin with a-z, go on with a-z 0-9 _ -, "
            f"use at most {names.MAX_NAME_CHARS} characters",
            code=code,
        )
    return value


def umask(value: str) -> int:
    """Parse a umask, `0027` or `027`. It may take rights from group and others only."""
    try:
        return umasks.parse(value)
    except umasks.OwnerMaskedError:
        raise BadValueError(
            f"{value!r} takes rights from the server's own account",
            f'write 0 for the owner: `"00{value[-2:]}"`',
            code="E-CONFIG-UMASK",
        ) from None
    except ValueError:
        raise BadValueError(
            f"{value!r} is not a umask", 'write octal digits, as `"0027"`', code="E-CONFIG-UMASK"
        ) from None


def audit(value: str) -> Keep:
    """Parse how request params are stored in the audit."""
    if value in get_args(Keep):
        return cast(Keep, value)
    fix = 'write `"hash"`, `"sealed"` or `"plain"`'
    raise BadValueError(
        f"{value!r} is not a form in which the audit stores params", fix, code="E-CONFIG-CHOICE"
    )


def relay(value: str) -> Relay:
    """Parse `gate` or `direct`."""
    if value in get_args(Relay):
        return cast(Relay, value)
    raise BadValueError(
        f"{value!r} is not a relay mode", 'write `"gate"` or `"direct"`', code="E-CONFIG-CHOICE"
    )


def pins(value: str) -> Pins:
    """Parse how the definitions of a server are accepted."""
    if value in get_args(Pins):
        return cast(Pins, value)
    fix = 'write `"first-use"`, `"strict"` or `"off"`'
    raise BadValueError(
        f"{value!r} is not a way to accept definitions", fix, code="E-CONFIG-CHOICE"
    )


def expose(value: str) -> Expose:
    """Parse `http`."""
    if value == "http":
        return "http"
    raise BadValueError(
        f"{value!r} cannot be exposed", 'write `"http"`, or remove it', code="E-CONFIG-CHOICE"
    )
