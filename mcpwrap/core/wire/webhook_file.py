"""Root's configuration of the approval webhook: the URL to post to."""

import msgspec


class Webhook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """URL to post to. `/var/lib/mcpwrap/webhook.json`."""

    url: str


def decode(text: bytes) -> Webhook:
    """Parse the file.

    Raises:
        msgspec.MsgspecError: the content is not valid.
    """
    return msgspec.json.decode(text, type=Webhook)
