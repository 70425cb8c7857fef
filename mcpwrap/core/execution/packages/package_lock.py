"""Lock of an environment: each distribution with its version and the hashes of its files.

uv writes it (`uv pip compile --generate-hashes`) from the replies of the index, and installs from
it with `--require-hashes`. It is parsed and written anew, so that nothing else reaches that second
command: a URL or an option in it would be taken for one.

Source: pip's requirements file format, hash-checking mode.
"""

import hashlib
import re
from dataclasses import dataclass

from mcpwrap.core.execution.packages.package_errors import PackageError

MAX_DISTRIBUTIONS = 512
MAX_CHARACTERS = 1024**2

_DISTRIBUTION = re.compile(
    r"(?P<name>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)==(?P<version>[a-z0-9][a-z0-9.!+_-]*)"
    r"(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)"
)


@dataclass(frozen=True, slots=True, order=True)
class LockedDistribution:
    """One distribution of a lock. `hashes` is SHA-256 in hexadecimal, of each of its files."""

    name: str
    version: str
    hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageLock:
    """Distributions of an environment, in the order of their names."""

    distributions: tuple[LockedDistribution, ...]

    def text(self) -> str:
        """Return the text of the requirements file."""
        return "".join(
            f"{each.name}=={each.version}"
            + "".join(f" \\\n    --hash=sha256:{digest}" for digest in each.hashes)
            + "\n"
            for each in self.distributions
        )

    def versions(self) -> dict[str, str]:
        """Return the version of each distribution."""
        return {each.name: each.version for each in self.distributions}

    def environment_name(self, interpreter: str) -> str:
        """Return the name of the environment for an interpreter: 64 hexadecimal digits.

        `interpreter` is its version and platform: files of one do not fit another.
        """
        return hashlib.sha256(f"{interpreter}\n{self.text()}".encode()).hexdigest()


def parse(text: str) -> PackageLock:
    """Parse the output of uv.

    Raises:
        PackageError: it has another thing than names with versions and SHA-256, or is too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise _refusal("is too long")
    found = []
    for line in re.sub(r" \\\n +", " ", text).splitlines():
        distribution = _DISTRIBUTION.fullmatch(line)
        if distribution is None:
            raise _refusal("has a line that is not a name with a version and hashes")
        hashes = distribution["hashes"].split(" --hash=sha256:")[1:]
        found.append(
            LockedDistribution(
                distribution["name"], distribution["version"], tuple(sorted(set(hashes)))
            )
        )
    if len(found) > MAX_DISTRIBUTIONS:
        raise _refusal(f"has more than {MAX_DISTRIBUTIONS} packages")
    lock = PackageLock(tuple(sorted(found)))
    if len(lock.versions()) != len(found):
        raise _refusal("has two versions of a package")
    return lock


def _refusal(why: str) -> PackageError:
    return PackageError(
        f"the resolution {why}",
        fix="require fewer packages; the operator checks the index and the version of uv",
        code="E-PACKAGE-LOCK",
    )
