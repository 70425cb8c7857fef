"""Steps for the webhook, which posts pending approvals."""

from mcpwrap.plan import paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.diff import egress_steps
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step


def load_webhook(want: Desired, have: Observed) -> list[Step]:
    """Have it post to where the configuration says, or to nowhere."""
    if not want.webhook:
        return egress_steps.without(paths.WEBHOOK_UNIT, paths.WEBHOOK, have)
    if egress_steps.is_served(paths.WEBHOOK_UNIT, paths.WEBHOOK, want, have):
        return []
    return [steps.WriteFile(paths.WEBHOOK, want.webhook), steps.LoadWebhook()]
