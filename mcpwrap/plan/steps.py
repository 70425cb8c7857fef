"""The things that root can do. Nothing else is ever done as root."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mcpwrap.core.http_listener import Listener, url
from mcpwrap.plan.nft import Elements
from mcpwrap.plan.paths import SPLICE_CA, WEBHOOK_KEY, proxy

_SHOWN = ("wrapped", "own", "direct")
# systemctl(1) has 90 s for units of one batch; each that is enabled or disabled by itself makes
# systemd read all unit files again, which takes it seconds where there are hundreds.
_AT_ONCE = 50
_NAMED = 8  # in a line that is about more, three are named and the rest is counted


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
class MakeAccounts:
    """Run sysusers once on their files, and see that each account is what its file says."""

    accounts: tuple[tuple[str, int], ...]  # names and UIDs

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        if len(self.accounts) == 1:
            [(name, uid)] = self.accounts
            return f"make the account {name} with UID {uid}"
        named = [f"{name} with UID {uid}" for name, uid in self.accounts]
        return f"make {len(named)} accounts: {_shortened(named)}"


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
class StopServers:
    """Stop sockets and wrappers of servers, and start them no more. Their sessions end."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it. Whose sessions end is named."""
        return f"stop {', '.join(self.names)}; {_its(self.names)} sessions end"


@dataclass(frozen=True, slots=True)
class RestartServers:
    """Restart wrappers that run, because what they run has changed. Their sessions end."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it. Whose sessions end is named."""
        runs = "it runs" if len(self.names) == 1 else "they run"
        return f"restart {', '.join(self.names)} if {runs}; {_its(self.names)} sessions end"


@dataclass(frozen=True, slots=True)
class EnableSockets:
    """Have systemd listen for sessions of servers after a reboot, once it reads its files again."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"listen after a reboot for sessions of {_shortened(self.names)}"


@dataclass(frozen=True, slots=True)
class StartSockets:
    """Listen for sessions of servers, now."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        return f"listen for sessions of {_shortened(self.names)}"


@dataclass(frozen=True, slots=True)
class StopListeners:
    """Close what listens for agents, and end the sessions of those that were heard there."""

    instances: tuple[str, ...]

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it. Whose sessions end is named."""
        listeners = "listener" if len(self.instances) == 1 else "listeners"
        closed = f"close the {listeners} {', '.join(self.instances)}"
        return f"{closed}; {_its(self.instances)} sessions end"


@dataclass(frozen=True, slots=True)
class StartListeners:
    """Listen for agents that speak HTTP, now and after a reboot."""

    listeners: tuple[tuple[str, Listener], ...]  # each with its instance

    def describe(self) -> str:
        """Return what the step does, as `plan` prints it."""
        said = [
            f"at {url(listener.address)} for {listener.server}, UID {listener.uid} alone"
            for _, listener in self.listeners
        ]
        return f"listen {_shortened(said, '; ')}"


_Each = TypeVar("_Each")


def batches(wanted: Sequence[_Each], at_once: int = _AT_ONCE) -> Iterator[tuple[_Each, ...]]:
    """Yield them in their order, as many at a time as one step is about."""
    for first in range(0, len(wanted), at_once):
        yield tuple(wanted[first : first + at_once])


def _its(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _shortened(named: Sequence[str], between: str = ", ") -> str:
    """Return all of a few, and how many more there are of many."""
    if len(named) <= _NAMED:
        return between.join(named)
    return f"{between.join(named[:3])} and {len(named) - 3} more"


Step = (
    WriteFile
    | RemoveFile
    | RemoveLeftover
    | RemoveTree
    | ShutTree
    | ForgetSecrets
    | MakeLink
    | MakeAccounts
    | RemoveAccount
    | LoadRules
    | MakeAuthority
    | LoadProxy
    | LoadFront
    | LoadWebhook
    | StopUnit
    | ReloadUnits
    | StopServers
    | RestartServers
    | EnableSockets
    | StartSockets
    | StopListeners
    | StartListeners
)
