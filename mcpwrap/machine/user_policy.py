"""Policy files of one user, for `mcpwrap run`: `policy.yaml`, and those in `policy.d`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpwrap.config.parse import SourceFile
from mcpwrap.errors import UsageError

OWN_FILE = "default-policy.yaml"  # in `policy.d`; `mcpwrap policy default` writes it


@dataclass(frozen=True, slots=True)
class UserPolicy:
    """Folder of a user's policy files."""

    folder: Path

    @property
    def own_file(self) -> Path:
        """Return the file that `mcpwrap policy default --user` writes."""
        return self.folder / "policy.d" / OWN_FILE

    def files(self) -> list[SourceFile]:
        """Return the policy files, in the order of their evaluation; there may be none.

        Raises:
            UsageError: a file or the folder cannot be read, so that its rules would be left out.
        """
        folder = self.folder / "policy.d"
        try:
            inside = sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
        except FileNotFoundError:
            inside = []
        except OSError as error:
            raise unreadable(folder, error) from error
        read = (_content(path) for path in (self.folder / "policy.yaml", *inside))
        return [file for file in read if file is not None]


def of_user(environ: Mapping[str, str], home: Path) -> UserPolicy:
    """Return the policy of this user. Source: XDG Base Directory Specification 0.8."""
    named = environ.get("XDG_CONFIG_HOME", "")
    config = Path(named) if named.startswith("/") else home / ".config"
    return UserPolicy(config / "mcpwrap")


def _content(path: Path) -> SourceFile | None:
    try:
        return SourceFile(str(path), path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UsageError:
    """Return the error of a policy file that cannot be read."""
    return UsageError(
        f"cannot be read: {error.strerror}",
        where=str(path),
        fix="name a file that this account can read",
        code="E-USAGE-UNREADABLE-FILE",
    )
