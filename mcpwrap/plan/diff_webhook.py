"""Steps for the webhook, which posts pending approvals."""

from mcpwrap.plan import diff_way_out, paths, steps
from mcpwrap.plan.desired import Desired
from mcpwrap.plan.observed import Observed
from mcpwrap.plan.steps import Step


def load_webhook(want: Desired, have: Observed) -> list[Step]:
    """Have it post to where the configuration says, or to nowhere."""
    if not want.webhook:
        return diff_way_out.without(paths.WEBHOOK_UNIT, paths.WEBHOOK, have)
    if diff_way_out.is_served(paths.WEBHOOK_UNIT, paths.WEBHOOK, want, have):
        return []
    return [steps.WriteFile(paths.WEBHOOK, want.webhook), steps.LoadWebhook()]
