"""Words and paths of a Linux distribution: package manager, names of packages, files of programs.

The one place that has them: a distribution is chosen by os-release(5), and each message, file and
command takes its words from here. An unknown distribution gets no command, and Debian's paths.
"""

import re
import shlex
from dataclasses import dataclass, replace
from typing import Literal

Software = Literal["squid", "openssl", "npm", "pip", "notify-send"]
_NAME_OF_SOFTWARE: dict[Software, str] = {
    "squid": "Squid with OpenSSL",
    "openssl": "OpenSSL",
    "npm": "npm",
    "pip": "pip",
    "notify-send": "libnotify's notify-send",
}
# os-release(5): ID is of these characters; of VERSION_ID the same is said.
_IDENTIFIER = re.compile(r"[a-z0-9._-]{1,64}")
_ASSIGNMENT = re.compile(r"[ \t]*([A-Z][A-Z0-9_]*)=(.*)")
_NPM_DEFAULTS = "npm/node_modules/@npmcli/config/lib/definitions/definitions.js"
_PIP_DEFAULTS = "pip/_internal/models/index.py"
_NPM_OF_SUSE = "/usr/lib*/node_modules/npm[0-9]*/" + _NPM_DEFAULTS.removeprefix("npm/")
# Of NodeSource and of nodejs.org, on each distribution.
_NPM_ELSEWHERE = (f"/usr/lib/node_modules/{_NPM_DEFAULTS}",
                  f"/usr/local/lib/node_modules/{_NPM_DEFAULTS}")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OsRelease:
    """Identity of the operating system, as os-release(5) has it; "" where it has none."""

    id: str = ""
    like: tuple[str, ...] = ()
    version: str = ""

    def major(self) -> str:
        """Return the first number of the version."""
        return self.version.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Words and paths of one family of distributions."""

    family: str
    # Command that installs packages, without a question. It removes no other package.
    installer: tuple[str, ...]
    shown_installer: str  # as a person types it
    package_by_software: dict[Software, str]
    system_cas: str  # certificates of the authorities that the machine trusts, in one file
    certgen: str  # Squid's helper that makes certificates
    npm_defaults: tuple[str, ...]  # files with npm's own defaults, as glob(7) patterns
    pip_defaults: tuple[str, ...]

    def install(self, software: Software) -> str:
        """Return how a person installs this, for the fix of a message."""
        package = self.package_by_software.get(software)
        if package is None:
            return f"install {_NAME_OF_SOFTWARE[software]} by this distribution's package manager"
        return f"`sudo {self.shown_installer} {package}`"

    def install_command(self, software: Software) -> list[str]:
        """Return the command that installs this without a question; [] if it is not known."""
        package = self.package_by_software.get(software)
        return [*self.installer, package] if package else []


_DEBIAN = Distribution(
    family="debian",
    # `--no-remove`: another variant of Squid that an administrator set up is not replaced.
    installer=("/usr/bin/apt-get", "install", "-y", "--no-remove"),
    shown_installer="apt install",
    # `squid` of Debian and Ubuntu is built with GnuTLS, and does not read inside TLS.
    package_by_software={
        "squid": "squid-openssl",
        "openssl": "openssl",
        "npm": "npm",
        "pip": "python3-pip",
        "notify-send": "libnotify-bin",
    },
    system_cas="/etc/ssl/certs/ca-certificates.crt",  # update-ca-certificates(8)
    certgen="/usr/lib/squid/security_file_certgen",  # list of files of squid-openssl
    npm_defaults=("/usr/share/nodejs/npm/lib/utils/config/definitions.js", *_NPM_ELSEWHERE),
    pip_defaults=(f"/usr/lib/python3/dist-packages/{_PIP_DEFAULTS}",),
)
_FEDORA = Distribution(
    family="fedora",
    installer=("/usr/bin/dnf", "install", "-y"),  # dnf(8) removes nothing without --allowerasing
    shown_installer="dnf install",
    package_by_software={
        "squid": "squid",
        "openssl": "openssl",
        "npm": "npm",  # a name of nodejs-npm, on RHEL too
        "pip": "python3-pip",
        "notify-send": "libnotify",
    },
    # update-ca-trust(8). Fedora 44 has no /etc/pki/tls/certs/ca-bundle.crt, which was a link to it:
    # https://fedoraproject.org/wiki/Changes/dropingOfCertPemFile
    system_cas="/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    # `--libexecdir=%{_libdir}/squid` in the spec of Fedora and RHEL; both have 64 bits alone.
    certgen="/usr/lib64/squid/security_file_certgen",
    # Of several versions beside each other: /usr/lib/node_modules_22.
    npm_defaults=(f"/usr/lib/node_modules*/{_NPM_DEFAULTS}", *_NPM_ELSEWHERE),
    pip_defaults=(f"/usr/lib/python3.*/site-packages/{_PIP_DEFAULTS}",),
)
_SUSE = Distribution(
    family="suse",
    # zypper(8): a conflict that only a removal resolves ends it.
    installer=("/usr/bin/zypper", "--non-interactive", "install"),
    shown_installer="zypper install",
    package_by_software={
        "squid": "squid",
        "openssl": "openssl",
        "npm": "npm-default",
        "pip": "python3-pip",
        "notify-send": "libnotify-tools",
    },
    system_cas="/etc/ssl/ca-bundle.pem",  # README of openSUSE's ca-certificates
    # `%define squidlibexecdir %{_libexecdir}/squid` in the spec, which Leap 15 has in /usr/lib.
    certgen="/usr/libexec/squid/security_file_certgen",
    npm_defaults=(_NPM_OF_SUSE, *_NPM_ELSEWHERE),
    pip_defaults=(f"/usr/lib/python3.*/site-packages/{_PIP_DEFAULTS}",),
)
_ARCH = Distribution(
    family="arch",
    installer=("/usr/bin/pacman", "-S", "--needed", "--noconfirm"),  # pacman(8)
    shown_installer="pacman -S",
    package_by_software={
        "squid": "squid",
        "openssl": "openssl",
        "npm": "npm",
        "pip": "python-pip",
        "notify-send": "libnotify",
    },
    system_cas="/etc/ssl/certs/ca-certificates.crt",  # a link of ca-certificates-utils
    certgen="/usr/lib/squid/security_file_certgen",
    npm_defaults=_NPM_ELSEWHERE,
    pip_defaults=(f"/usr/lib/python3.*/site-packages/{_PIP_DEFAULTS}",),
)
UNKNOWN = Distribution(
    family="unknown",
    installer=(),
    shown_installer="",
    package_by_software={},
    system_cas=_DEBIAN.system_cas,
    certgen=_DEBIAN.certgen,
    npm_defaults=(*_DEBIAN.npm_defaults, *_FEDORA.npm_defaults),
    pip_defaults=(*_DEBIAN.pip_defaults, *_FEDORA.pip_defaults),
)
_BY_ID = {
    **dict.fromkeys(("debian", "ubuntu"), _DEBIAN),
    **dict.fromkeys(("fedora", "rhel", "centos", "rocky", "almalinux"), _FEDORA),
    **dict.fromkeys(("opensuse", "opensuse-leap", "opensuse-tumbleweed", "suse", "sles"), _SUSE),
    "arch": _ARCH,
}
KNOWN_IDS = frozenset(_BY_ID)


def distribution_of(release: OsRelease) -> Distribution:
    """Return the words of a distribution: by its own name, or by the first one that it is like."""
    for name in (release.id, *release.like):
        if name in _BY_ID:
            return _of_version(_BY_ID[name], release.major())
    return UNKNOWN


def _of_version(found: Distribution, major: str) -> Distribution:
    if found is _SUSE and major == "15":
        return replace(found, certgen="/usr/lib/squid/security_file_certgen")
    return found


def parse_os_release(text: str) -> OsRelease:
    """Return the identity in a text of os-release(5). A value of other characters counts as none.

    Nothing in it is executed: of a value with a variable or a command no name is left.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        if found := _ASSIGNMENT.fullmatch(line):
            values[found[1]] = _unquoted(found[2])
    like = tuple(name for word in values.get("ID_LIKE", "").split() if (name := _identifier(word)))
    return OsRelease(
        id=_identifier(values.get("ID", "")),
        like=like,
        version=_identifier(values.get("VERSION_ID", "")),
    )


def _unquoted(value: str) -> str:
    try:
        words = shlex.split(value, comments=True)
    except ValueError:  # a quotation mark without its twin
        return ""
    return words[0] if len(words) == 1 else ""


def _identifier(value: str) -> str:
    return value if _IDENTIFIER.fullmatch(value) else ""
