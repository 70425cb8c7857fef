"""What the configuration takes off a boundary, for `plan` and `apply` to say each time."""

from mcpwrap.config.model import Config

_SAME_UID = (
    "WIDENED by [approvals] same_uid: who runs an agent approves its calls without any proof; "
    "so an agent that reaches a shell of its account approves its own"
)


def of(config: Config) -> list[str]:
    """Return a line for each."""
    return [_SAME_UID] if config.approvals.same_uid else []
