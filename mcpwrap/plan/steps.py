"""The things that root can do. Nothing else is ever done as root."""

from dataclasses import dataclass

from mcpwrap.core.http_listener import Listener, url
from mcpwrap.plan.nft import Elements
from mcpwrap.plan.paths import SPLICE_CA, WEBHOOK_KEY, proxy

_SHOWN = ("wrapped", "own", "direct")


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
class RemoveLeftover:
    """Remove a file that root began to write and did not complete, unless a program does now."""

    path: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"remove {self.path}, which was not completed"


@dataclass(frozen=True, slots=True)
class RemoveTree:
    """Remove a folder with all that is in it: state, cache or certificates that nobody uses."""

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
class ForgetSecrets:
    """Remove all sealed secrets of a retired server."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"forget the secrets of {self.name}"


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
    """Load the elements of the packet rules, in one transaction."""

    elements: Elements

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it. What goes past Squid is named."""
        by_set = {n: sorted(e for s, e in self.elements if s.startswith(n)) for n in _SHOWN}
        text = f"load the packet rules: {len(by_set['wrapped'])} servers, "
        text += f"{len(by_set['own'])} of them with an allowlist"
        if by_set["direct"]:
            text += f"; DIRECT, not through Squid: {', '.join(by_set['direct'])}"
        if heard := sum(name == "heard" for name, _ in self.elements):
            text += f"; {heard} agents by HTTP"
        return text


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Make the certificates of one listener of Squid, and what its server is to trust."""

    name: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        if self.name == SPLICE_CA:
            return "make a certificate for Squid's ports, which nobody is shown"
        return f"make a certificate authority that {self.name} alone trusts"


@dataclass(frozen=True, slots=True)
class LoadProxy:
    """Have Squid check this configuration, and take it. One that it refuses is not loaded."""

    instance: str
    text: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"load {proxy(self.instance)} into Squid; connections stay"


@dataclass(frozen=True, slots=True)
class LoadFront:
    """Have the front serve what is in its file."""

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return "have the front serve the servers that know no proxy; connections stay"


@dataclass(frozen=True, slots=True)
class LoadWebhook:
    """Have the webhook post to what is in its file, and make the key where there is none."""

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"have the webhook post what waits for approval, signed with {WEBHOOK_KEY}"


@dataclass(frozen=True, slots=True)
class StopUnit:
    """Stop a unit of the way out, or the webhook, and start it no more."""

    unit: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"stop {self.unit}; its connections end"


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


@dataclass(frozen=True, slots=True)
class StopListener:
    """Close what listens for one agent of a server, and end the sessions of who was heard there."""

    instance: str

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"close the listener {self.instance}; its sessions end"


@dataclass(frozen=True, slots=True)
class StartListener:
    """Listen for an agent that speaks HTTP, now and after a reboot."""

    instance: str
    listener: Listener

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        who = f"UID {self.listener.uid} alone"
        return f"listen at {url(self.listener.address)} for {self.listener.server}, {who}"


Step = (
    WriteFile
    | RemoveFile
    | RemoveLeftover
    | RemoveTree
    | ShutTree
    | ForgetSecrets
    | MakeLink
    | MakeAccount
    | RemoveAccount
    | LoadRules
    | MakeAuthority
    | LoadProxy
    | LoadFront
    | LoadWebhook
    | StopUnit
    | ReloadUnits
    | StopServer
    | RestartServer
    | StartSocket
    | StopListener
    | StartListener
)
