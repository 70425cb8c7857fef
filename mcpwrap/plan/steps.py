"""The things that root can do. Nothing else is ever done as root."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Put this text there, root:root 0644, whole or not at all."""

    path: str
    text: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"write {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Remove a file or link, and its folder if that is a drop-in folder now empty."""

    path: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"remove {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveTree:
    """Remove a folder with all that is in it: a retired server's state."""

    path: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"remove {self.path} and all in it"


@dataclass(frozen=True, slots=True)
class ShutTree:
    """Give a folder to root alone: its owner's UID may go to somebody else."""

    path: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"keep {self.path} for root alone"


@dataclass(frozen=True, slots=True)
class MakeLink:
    """Make a symbolic link."""

    path: str
    target: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"link {self.path} to {self.target}"


@dataclass(frozen=True, slots=True)
class MakeAccount:
    """Run sysusers on the account's file and see that the account is what the file says."""

    name: str
    uid: int

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"make the account {self.name} with UID {self.uid}"


@dataclass(frozen=True, slots=True)
class RemoveAccount:
    """Remove an account and its group."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"remove the account {self.name}"


@dataclass(frozen=True, slots=True)
class LoadRules:
    """Load the packet rules, in one transaction."""

    refused_uids: tuple[int, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        uids = ", ".join(map(str, self.refused_uids)) or "nobody but the gate"
        return f"load the packet rules; refused all network: {uids}"


@dataclass(frozen=True, slots=True)
class ReloadUnits:
    """Make systemd read its unit files again."""

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return "make systemd read the unit files again"


@dataclass(frozen=True, slots=True)
class StopServer:
    """Stop a server's socket and wrapper, and start them no more. Its sessions end."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"stop {self.name}; its sessions end"


@dataclass(frozen=True, slots=True)
class RestartServer:
    """Restart a wrapper if it runs, because what it runs has changed. Its sessions end."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"restart {self.name} if it runs; its sessions end"


@dataclass(frozen=True, slots=True)
class StartSocket:
    """Listen for sessions of a server, now and after a reboot."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"listen for sessions of {self.name}"


Step = (
    WriteFile
    | RemoveFile
    | RemoveTree
    | ShutTree
    | MakeLink
    | MakeAccount
    | RemoveAccount
    | LoadRules
    | ReloadUnits
    | StopServer
    | RestartServer
    | StartSocket
)
