"""State that an `apply` makes effective: a file on disk does not prove that a process read it."""

import hashlib
from collections.abc import Mapping

import msgspec

from mcpwrap.core.wire import server_files as specs
from mcpwrap.plan import paths
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.observed import Applied, Observed


def _access_rule(want: Desired, name: str) -> str:
    """Return a server's access rule as text: sessions of an agent that loses access must end.

    Agents by HTTP are left out: their listener ends their sessions when it is stopped. So are the
    members of groups, which the kernel reports, and the policy: sessions keep the one that the gate
    has read. A server that becomes a member of a hub ends no session of its own.
    """
    rule = want.admissions.by_server[name]
    return specs.encode(
        msgspec.structs.replace(rule, http_uids=(), members=(), policy=(), is_member=False)
    )


def all_of(want: Desired) -> Applied:
    """Return the state that is in effect once all steps are done."""
    return Applied(
        hash_by_server={
            name: digest("\0".join([*files.values(), _access_rule(want, name)]))
            for name, files in want.server_files.items()
        },
        hash_by_unit={unit: digest(text) for unit, text in text_by_unit(want).items()},
        elements=want.elements,
    )


def text_by_unit(want: Desired) -> dict[str, str]:
    """Return the desired configuration of each unit of egress, and of the webhook, that has one."""
    texts = {paths.proxy_unit(instance): text for instance, text in want.proxies.items()}
    texts |= {paths.FRONT_UNIT: want.front, paths.WEBHOOK_UNIT: want.webhook}
    return {unit: text for unit, text in texts.items() if text}


def digest(text: str) -> str:
    """Return the hash of a text in the applied state."""
    return hashlib.sha256(text.encode()).hexdigest()


def left_as_it_is(want: Desired, have: Observed) -> Applied:
    """Return what the last run made effective and this run leaves unchanged."""
    now, then = all_of(want), have.applied
    # A process that has read a certificate uses it after its removal, until it loads the new one.
    anew = want.authorities - have.authorities
    for unit, text in text_by_unit(want).items():
        if any(paths.ca_key(name) in text for name in anew):
            anew |= {unit}
    return Applied(
        hash_by_server=_same(now.hash_by_server, then.hash_by_server, anew),
        hash_by_unit=_same(now.hash_by_unit, then.hash_by_unit, anew),
        elements=then.elements,
    )


def _same(now: Mapping[str, str], then: Mapping[str, str], but: frozenset[str]) -> dict[str, str]:
    return {name: text for name, text in then.items() if now.get(name) == text and name not in but}
