"""Default policy: how it extends the policy of an operator's files."""

from msgspec.structs import replace

from mcpwrap.core.policy.rules import (
    DEFAULT_PREFIX,
    LIMITS,
    LimitsEntry,
    Policy,
    is_disabled,
)
from mcpwrap.core.text.globs import matches_any


def with_default_policy(policy: Policy, default: Policy) -> Policy:
    """Return a policy with the rules and limits of the default policy, if it does not replace it.

    Rules that are disabled for all servers are left out.
    """
    if not policy.has_default_policy:
        return policy
    off = [entry for entry in policy.disabled if "*" in entry.servers]
    return replace(
        policy,
        default_rules=tuple(rule for rule in default.rules if not is_disabled(off, rule.name)),
        default_limits=() if is_disabled(off, LIMITS) else default.limits,
    )


def short_names(default: Policy) -> tuple[str, ...]:
    """Return the names by which the parts of the default policy are disabled."""
    names = [rule.name.removeprefix(DEFAULT_PREFIX) for rule in default.rules]
    return (*names, LIMITS) if default.limits else tuple(names)


def default_limits(default: LimitsEntry | None, own: LimitsEntry | None) -> LimitsEntry | None:
    """Return the default policy's limits without those that the operator's entry replaces."""
    if default is None or own is None:
        return default
    left = replace(
        default,
        calls=None if own.calls is not None else default.calls,
        identical_calls=None if own.identical_calls is not None else default.identical_calls,
        repeated_calls=None if own.repeated_calls is not None else default.repeated_calls,
        failures=None if own.failures is not None else default.failures,
        cool_down_s=default.cool_down_s if own.cool_down_s is None else own.cool_down_s,
    )
    counts = (left.calls, left.identical_calls, left.repeated_calls, left.failures)
    return left if any(count is not None for count in counts) else None


def names_tool(globs: tuple[str, ...], tool: str) -> bool:
    """Return whether globs of a rule name a tool, and not each tool there is."""
    return any(matches_any((glob,), tool) for glob in globs if glob.strip("*?"))
