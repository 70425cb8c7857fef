"""Request rules on the head: method, Host, Origin, Fetch Metadata (CSRF, DNS rebinding)."""

from collections.abc import Sequence
from dataclasses import dataclass

FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequestHead:
    """Head of a request. Each header has all its values."""

    method: str
    target: str
    host: Sequence[str]
    origin: Sequence[str] = ()
    site: Sequence[
        str
    ] = ()  # Sec-Fetch-Site, and the next two: https://www.w3.org/TR/fetch-metadata/
    mode: Sequence[str] = ()
    destination: Sequence[str] = ()
    content_type: Sequence[str] = ()
    content_encoding: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WebRejection:
    """Rejection of a request, with the HTTP status."""

    status: int
    why: str


def judge(head: WebRequestHead, hosts: Sequence[str]) -> WebRejection | None:
    """Return why a request is rejected, or None. `hosts` are the accepted values of Host."""
    if head.method not in METHODS:
        return WebRejection(405, "only GET, HEAD and POST are allowed [E-WEB-METHOD]")
    if not head.target.startswith("/"):
        return WebRejection(400, "the request target must be a path [E-WEB-METHOD]")
    if len(head.host) != 1 or head.host[0] not in hosts:
        return WebRejection(
            421, f"this page is http://{hosts[0]}/, and was requested by another name [E-WEB-HOST]"
        )
    if not _is_from_here(head):
        return WebRejection(403, "another page has sent this request [E-WEB-ORIGIN]")
    return _judge_post(head) if head.method == "POST" else None


def _is_from_here(head: WebRequestHead) -> bool:
    """Return whether a request is from this page, by the browser's Fetch Metadata, if it has any.

    A link to this page may be anywhere: following it shows the page to the person only.
    """
    if list(head.site) in ([], ["same-origin"], ["none"]):
        return True
    is_followed = (list(head.mode), list(head.destination)) == (["navigate"], ["document"])
    return is_followed and head.method != "POST"


def _judge_post(head: WebRequestHead) -> WebRejection | None:
    if list(head.origin) != [f"http://{head.host[0]}"]:
        return WebRejection(403, "the form was not sent by this page [E-WEB-ORIGIN]")
    if list(head.content_type) != [FORM] or head.content_encoding:
        return WebRejection(415, f"a form must be sent as {FORM} [E-WEB-FORM-INVALID]")
    return None
