"""Request filter by the head alone: method, Host, Origin, Fetch Metadata (CSRF, DNS rebinding)."""

from collections.abc import Sequence
from dataclasses import dataclass

FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequestHead:
    """Head of a request. A header that came twice is there twice."""

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
    """Return why a request is not heard; nothing if it is. `hosts` are our own names."""
    if head.method not in METHODS:
        return WebRejection(405, "only GET, HEAD and POST are known here")
    if not head.target.startswith("/"):
        return WebRejection(400, "the address must be a path")
    if len(head.host) != 1 or head.host[0] not in hosts:
        return WebRejection(
            421, f"this page is http://{hosts[0]}/, and was asked for by another name"
        )
    if not _is_from_here(head):
        return WebRejection(403, "another page has sent this request")
    return _judge_post(head) if head.method == "POST" else None


def _is_from_here(head: WebRequestHead) -> bool:
    """Believe the browser, where it says which page a request comes from.

    A link that somebody follows may be anywhere: it shows them a page, and the other page nothing.
    """
    if list(head.site) in ([], ["same-origin"], ["none"]):
        return True
    is_followed = (list(head.mode), list(head.destination)) == (["navigate"], ["document"])
    return is_followed and head.method != "POST"


def _judge_post(head: WebRequestHead) -> WebRejection | None:
    if list(head.origin) != [f"http://{head.host[0]}"]:
        return WebRejection(403, "the form was not sent by this page")
    if list(head.content_type) != [FORM] or head.content_encoding:
        return WebRejection(415, f"a form is sent as {FORM}")
    return None
