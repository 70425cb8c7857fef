"""Steps of a plan, a closed set: `apply` does nothing else as root."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mcpwrap.core.wire.listener_file import Listener, url
from mcpwrap.plan.egress.nft_elements import Elements
from mcpwrap.plan.paths import SPLICE_CA, WEBHOOK_KEY, proxy

_SHOWN = ("wrapped", "egress_addr", "direct")
# systemctl(1) has 90 s for units of one batch; each that is enabled or disabled by itself makes
# systemd read all unit files again, which takes it seconds where there are hundreds.
_AT_ONCE = 50
_NAMED = 8  # in a line that is about more, three are named and the rest is counted


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Step that writes a text to a file, root:root 0644, whole or not at all."""

    path: str
    text: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"write {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Step that removes a file or link, and its folder if that is a drop-in folder now empty."""

    path: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"remove {self.path}"


@dataclass(frozen=True, slots=True)
class RemoveLeftover:
    """Step that removes a file that root did not finish, unless a program is writing it now."""

    path: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"remove {self.path}, which was not completed"


@dataclass(frozen=True, slots=True)
class RemoveTree:
    """Step that removes a folder with its content: unused state, cache or certificates."""

    path: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"remove {self.path} and its content"


@dataclass(frozen=True, slots=True)
class ShutTree:
    """Step that gives a folder to root alone: its owner's UID may go to another account."""

    path: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"give {self.path} to root alone"


@dataclass(frozen=True, slots=True)
class ForgetSecrets:
    """Step that removes all sealed secrets of a retired server."""

    name: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"forget the secrets of {self.name}"


@dataclass(frozen=True, slots=True)
class MakeLink:
    """Step that makes a symbolic link."""

    path: str
    target: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"link {self.path} to {self.target}"


@dataclass(frozen=True, slots=True)
class MakeAccounts:
    """Step that runs sysusers once on account files, and checks each account against its file."""

    accounts: tuple[tuple[str, int], ...]  # names and UIDs

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        if len(self.accounts) == 1:
            [(name, uid)] = self.accounts
            return f"make the account {name} with UID {uid}"
        named = [f"{name} with UID {uid}" for name, uid in self.accounts]
        return f"make {len(named)} accounts: {_shortened(named)}"


@dataclass(frozen=True, slots=True)
class RemoveAccount:
    """Step that removes an account and its group."""

    name: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"remove the account {self.name}"


@dataclass(frozen=True, slots=True)
class LoadRules:
    """Step that loads the elements of the packet rules, in one transaction."""

    elements: Elements
    slots: int = 0  # of the wrapped accounts those of run slots

    def describe(self) -> str:
        """Return the line that `plan` prints for the step. It names what goes past Squid."""
        by_set = {n: sorted(e for s, e in self.elements if s.startswith(n)) for n in _SHOWN}
        text = f"load the packet rules: {len(by_set['wrapped']) - self.slots} servers, "
        text += f"{len(by_set['egress_addr'])} of them with an allowlist"
        if self.slots:
            text += f"; {self.slots} run slots without a network"
        if by_set["direct"]:
            text += f"; DIRECT, not through Squid: {', '.join(by_set['direct'])}"
        if clients := sum(name == "listener_clients" for name, _ in self.elements):
            text += f"; {clients} agents by HTTP"
        return text


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Step that makes the certificates of one Squid listener, and the bundle its server trusts."""

    name: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        if self.name == SPLICE_CA:
            return "make a certificate for Squid's ports, which no client is shown"
        return f"make a certificate authority that {self.name} alone trusts"


@dataclass(frozen=True, slots=True)
class LoadProxy:
    """Step that loads a configuration into Squid, unless the check by Squid refuses it."""

    instance: str
    text: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"load {proxy(self.instance)} into Squid; connections stay"


@dataclass(frozen=True, slots=True)
class LoadFront:
    """Step that makes the front serve the content of its file."""

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return "make the front serve the servers without proxy support; connections stay"


@dataclass(frozen=True, slots=True)
class LoadWebhook:
    """Step that makes the webhook post to the URL in its file, with a new key if it has none."""

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"make the webhook post pending approvals, signed with {WEBHOOK_KEY}"


@dataclass(frozen=True, slots=True)
class StopUnit:
    """Step that stops and disables a unit of egress, or the webhook."""

    unit: str

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"stop {self.unit}; its connections end"


@dataclass(frozen=True, slots=True)
class ReloadUnits:
    """Step that makes systemd read its unit files again."""

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return "make systemd read the unit files again"


@dataclass(frozen=True, slots=True)
class StopServers:
    """Step that stops and disables sockets and wrappers of servers. Their sessions end."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step. It names whose sessions end."""
        return f"stop {', '.join(self.names)}; {_its(self.names)} sessions end"


@dataclass(frozen=True, slots=True)
class RestartServers:
    """Step that restarts running wrappers, because what they run has changed. Sessions end."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step. It names whose sessions end."""
        runs = "it runs" if len(self.names) == 1 else "they run"
        return f"restart {', '.join(self.names)} if {runs}; {_its(self.names)} sessions end"


@dataclass(frozen=True, slots=True)
class EnableSockets:
    """Step that enables sockets of servers at boot, once systemd reads its files again."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"listen after a reboot for sessions of {_shortened(self.names)}"


@dataclass(frozen=True, slots=True)
class StartSockets:
    """Step that starts the sockets of servers, now."""

    names: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return f"listen for sessions of {_shortened(self.names)}"


@dataclass(frozen=True, slots=True)
class StopListeners:
    """Step that closes HTTP listeners of agents, and ends the sessions opened there."""

    instances: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step. It names whose sessions end."""
        listeners = "listener" if len(self.instances) == 1 else "listeners"
        closed = f"close the {listeners} {', '.join(self.instances)}"
        return f"{closed}; {_its(self.instances)} sessions end"


@dataclass(frozen=True, slots=True)
class StartListeners:
    """Step that opens HTTP listeners of agents, now and after a reboot."""

    listeners: tuple[tuple[str, Listener], ...]  # each with its instance

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        texts = [
            f"at {url(listener.address)} for {listener.server}, UID {listener.uid} alone"
            for _, listener in self.listeners
        ]
        return f"listen {_shortened(texts, '; ')}"


@dataclass(frozen=True, slots=True)
class StopJobs:
    """Step that stops and disables run slots. Their runs end."""

    instances: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step. It names whose runs end."""
        slots = "run slot" if len(self.instances) == 1 else "run slots"
        return f"stop the {slots} {_shortened(self.instances)}; {_its(self.instances)} runs end"


@dataclass(frozen=True, slots=True)
class StartJobs:
    """Step that opens the sockets of run slots, now and after a reboot."""

    instances: tuple[str, ...]

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        slots = "run slot" if len(self.instances) == 1 else "run slots"
        return f"open the {slots} {_shortened(self.instances)}"


@dataclass(frozen=True, slots=True)
class LoadWorker:
    """Step that makes the worker listen, now and after a reboot."""

    def describe(self) -> str:
        """Return the line that `plan` prints for the step."""
        return "make the worker listen for code to execute"


_Each = TypeVar("_Each")


def batches(wanted: Sequence[_Each], at_once: int = _AT_ONCE) -> Iterator[tuple[_Each, ...]]:
    """Yield the elements in their order, in groups of the size of one step."""
    for first in range(0, len(wanted), at_once):
        yield tuple(wanted[first : first + at_once])


def _its(names: Sequence[str]) -> str:
    return "its" if len(names) == 1 else "their"


def _shortened(named: Sequence[str], between: str = ", ") -> str:
    """Return a few names in full; of many, the first three and the number of the others."""
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
    | StopJobs
    | StartJobs
    | LoadWorker
)
