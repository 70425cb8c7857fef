"""Observed state of the machine, as far as root could have produced it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mcpwrap.plan.egress import nft_elements
from mcpwrap.plan.egress.nft_elements import Elements


class Applied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State that the last complete `apply` made effective: `/var/lib/mcpwrap/applied.json`."""

    hash_by_server: dict[str, str] = {}
    hash_by_unit: dict[str, str] = {}  # of the configuration of egress units and the webhook
    elements: nft_elements.Elements = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Observed state. `files` has mcpwrap's files that exist; `links` has targets by path."""

    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    uid_by_account: Mapping[str, int] = field(default_factory=dict)  # mcpwrap's accounts alone
    listening: frozenset[str] = frozenset()  # servers whose socket is active and enabled
    loaded_units: frozenset[str] = frozenset()  # servers of which systemd knows a unit
    open_listeners: frozenset[str] = frozenset()  # those of HTTP that are active and enabled
    loaded_listeners: frozenset[str] = frozenset()  # those of which systemd knows a unit
    open_jobs: frozenset[str] = frozenset()  # run slots whose socket is active and enabled
    loaded_jobs: frozenset[str] = frozenset()  # those of which systemd knows a unit
    has_stale_units: bool = False
    elements: Elements | None = None  # in the kernel; None: only root can see
    authorities: frozenset[str] = frozenset()  # with all their files
    serving: frozenset[str] = frozenset()  # egress units that run, and start at boot
    caches: frozenset[str] = frozenset()  # servers that have a cache folder
    applied: Applied = field(default_factory=Applied)
    states: frozenset[str] = frozenset()  # servers that have a state folder
    shut_states: frozenset[str] = frozenset()  # those of them that are root's alone
    leftovers: frozenset[str] = frozenset()  # files that root began to write, and did not complete
    kept_secrets: frozenset[str] = frozenset()  # names with secrets
