"""Requirements of packages: a name, extras, versions and a marker, and no place to install from.

The library `packaging` parses them. It and uv accept more than an agent may write: URLs, paths,
and in a requirements file options, comments and environment variables. None of these can be written
with the characters that are allowed here, so uv cannot take a line for anything but a name.

Source: PEP 508 (grammar), PEP 503 (normalised names), PEP 440 (versions).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as ParsedRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from mcpwrap.core.execution.packages.package_errors import PackageError
from mcpwrap.core.text.sanitise import one_line

MAX_REQUIREMENTS = 64
MAX_CHARACTERS = 256
# Without @ / \ : # $ % { } & | and what is not ASCII: URLs, paths, comments, variables.
_CHARACTERS = re.compile(r"[A-Za-z0-9 ._\-\[\],<>=!~*+;()'\"]*")
_FIX = 'write a name and, if needed, versions, as in "numpy" or "pandas>=2,<3"'


@dataclass(frozen=True, slots=True, order=True)
class PackageRequirement:
    """One requirement in canonical form: equal requirements have equal texts."""

    name: str  # normalised
    extras: tuple[str, ...]  # normalised and sorted
    specifiers: str
    marker: str

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        return f"{self.name}{extras}{self.specifiers}{marker}"


def parse(untrusted: str) -> PackageRequirement:
    """Parse one requirement.

    Raises:
        PackageError: it is not a name with versions, or it is too long.
    """
    if len(untrusted) > MAX_CHARACTERS:
        raise _refusal(untrusted, f"is longer than {MAX_CHARACTERS} characters")
    if unusual := _CHARACTERS.sub("", untrusted, count=1):
        raise _refusal(untrusted, f"has the character {unusual[0]!a}, which no requirement needs")
    if "'" in untrusted and '"' in untrusted:  # a quote in a string: parsers differ in it
        raise _refusal(untrusted, "has both kinds of quotes")
    try:
        parsed = ParsedRequirement(untrusted)
    except (InvalidRequirement, InvalidMarker) as error:
        raise _refusal(untrusted, "is not a package name with versions") from error
    if any(specifier.operator == "===" for specifier in parsed.specifier):
        raise _refusal(untrusted, "compares by ===, which ignores the rules of versions")
    return PackageRequirement(
        name=canonicalize_name(parsed.name),
        extras=tuple(sorted({canonicalize_name(extra) for extra in parsed.extras})),
        specifiers=str(parsed.specifier),
        marker=str(parsed.marker or ""),
    )


def merge(*groups: Iterable[str]) -> tuple[PackageRequirement, ...]:
    """Parse and unite requirements: those of the configuration, of a script, of an argument.

    Each is there once, in one order. Two with the same name stay two: the resolver finds a version
    that satisfies both, or reports the conflict.

    Raises:
        PackageError: one is not valid, or there are too many.
    """
    given = [requirement for group in groups for requirement in group]
    if len(given) > MAX_REQUIREMENTS:
        raise PackageError(
            f"{len(given)} packages are required; the limit is {MAX_REQUIREMENTS}",
            fix="name only the packages that the code imports; their dependencies are found",
            code="E-PACKAGE-TOO-MANY",
        )
    return tuple(sorted({parse(requirement) for requirement in given}))


def requirements_file(requirements: Sequence[PackageRequirement]) -> str:
    """Return the text of a requirements file for uv."""
    return "".join(f"{requirement}\n" for requirement in requirements)


def expect_python(requires_python: str, version: str) -> None:
    """Check a `requires-python` against the version of the interpreter. "" accepts each version.

    Raises:
        PackageError: the interpreter is another one, or the specifiers are not valid.
    """
    problem = f"the script requires Python {one_line(requires_python[:MAX_CHARACTERS])}"
    try:
        accepted = SpecifierSet(requires_python[:MAX_CHARACTERS])
    except InvalidSpecifier as error:
        raise PackageError(
            f"{problem}, which is not a version specifier",
            fix='write `requires-python = ">=3.11"`, or leave it out',
            code="E-PACKAGE-PYTHON",
        ) from error
    if not accepted.contains(version, prereleases=True):
        raise PackageError(
            f"{problem}, and runs have Python {version}",
            fix=f"write code for Python {version}; the operator chooses the interpreter",
            code="E-PACKAGE-PYTHON",
        )


def unite_versions(*groups: Mapping[str, str]) -> dict[str, str]:
    """Unite versions by name: the first group that has a distribution hides it in the others.

    One has several names: that of its metadata, as in "NumPy", and the normalised one of a lock.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, version in (each for group in groups for each in group.items()):
        found.setdefault(canonicalize_name(name), (name, version))
    return dict(found.values())


def expect_installed(
    required: Iterable[PackageRequirement],
    version_by_name: Mapping[str, str] | None,
    python_version: str,
) -> None:
    """Check requirements against what runs have, where nothing can be added.

    `version_by_name` is None where this is not known.

    Raises:
        PackageError: one is not satisfied, or it cannot be decided.
    """
    installed: dict[str, str] = {
        canonicalize_name(name): version for name, version in (version_by_name or {}).items()
    }
    for requirement in sorted(required):
        if version_by_name is None:
            raise PackageError(
                f"whether {requirement.name} is installed is not known here, and runs of this "
                "server cannot add packages",
                fix="leave the requirement out; importlib.metadata lists what is installed",
                code="E-PACKAGE-NOT-INSTALLED",
            )
        _expect_met(requirement, installed.get(requirement.name), python_version)


def _expect_met(requirement: PackageRequirement, version: str | None, python_version: str) -> None:
    """Check a requirement against the installed version; None is not installed."""
    name = requirement.name
    try:
        if not _applies(requirement.marker, python_version):
            return
    except (KeyError, ValueError):  # it compares what has no order, or names what only locks have
        why = f"the marker of {name} cannot be evaluated"
    else:
        if version is None:
            why = f"{name} is not installed"
        elif requirement.extras:  # what they require is not in the list of what is installed
            why = f"{name} is installed, perhaps without [{','.join(requirement.extras)}]"
        elif not _is_in(requirement.specifiers, version):
            why = f"{name} {one_line(version)} is installed, not {name}{requirement.specifiers}"
        else:
            return
    raise PackageError(
        f"{why}, and runs of this server cannot add packages",
        fix="leave the requirement out, and use what the tool's description lists",
        code="E-PACKAGE-NOT-INSTALLED",
    )


def _applies(marker: str, python_version: str) -> bool:
    """Evaluate a marker. The platform is that of this process, which is on the same machine."""
    minor = ".".join(python_version.split(".")[:2])
    environment = {"python_version": minor, "python_full_version": python_version}
    return not marker or Marker(marker).evaluate(environment)


def _is_in(specifiers: str, version: str) -> bool:
    """Return whether a version is accepted. One that is not of PEP 440 satisfies no specifier."""
    if not specifiers:
        return True
    try:
        return SpecifierSet(specifiers).contains(Version(version), prereleases=True)
    except InvalidVersion:
        return False


def _refusal(untrusted: str, why: str) -> PackageError:
    shown = one_line(untrusted[:80])
    return PackageError(f'"{shown}" {why}', fix=_FIX, code="E-PACKAGE-REQUIREMENT")
