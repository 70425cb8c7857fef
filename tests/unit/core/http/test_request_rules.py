"""HTTP requests accepted by their head alone; each refusal has its twin."""

import pytest

from mcpwrap.core.http.request_rules import (
    AcceptedRequest,
    HttpEndpoint,
    HttpRejection,
    RequestHead,
    accepts,
    judge,
)

HOST = "127.78.0.1:52100"
GOOD = {
    "Host": HOST,
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


def _head(method: str, target: str, **changes: str | None) -> RequestHead:
    fields = GOOD | {name.replace("_", "-"): value for name, value in changes.items()}
    return RequestHead(method, target, tuple((k, v) for k, v in fields.items() if v is not None))


@pytest.mark.parametrize(
    ("method", "target", "changes", "status"),
    [
        ("POST", "/mcp", {}, 0),
        ("POST", "/", {}, 0),
        ("POST", "/messages?session=abc", {}, 0),
        ("GET", "/mcp", {}, 0),
        ("GET", "/sse", {}, 0),
        ("DELETE", "/mcp", {}, 0),
        ("DELETE", "/mcp", {"Accept": None}, 0),
        ("POST", "/mcp", {"Host": None}, 421),
        ("POST", "/mcp", {"Host": "evil.example:52100"}, 421),
        ("POST", "/mcp", {"Host": "127.78.0.1"}, 421),
        ("POST", "/mcp", {"Host": "127.78.0.1.nip.io:52100"}, 421),
        ("POST", "/mcp", {"Host": "localhost:52100"}, 421),
        ("POST", "/mcp", {"host": HOST}, 421),  # a second one, although the same
        ("POST", "/mcp", {"Origin": f"http://{HOST}"}, 0),
        ("POST", "/mcp", {"Origin": "null"}, 403),
        ("POST", "/mcp", {"Origin": f"https://{HOST}"}, 403),
        ("POST", "/mcp", {"Origin": f"http://{HOST}/"}, 403),
        ("POST", "/mcp", {"Origin": "http://127.78.0.1:52101"}, 403),
        ("POST", "/mcp", {"Origin": "http://evil.example"}, 403),
        ("GET", "/sse", {"Sec_Fetch_Site": "none"}, 0),
        ("GET", "/sse", {"Sec_Fetch_Site": "same-origin"}, 0),
        ("GET", "/sse", {"Sec_Fetch_Site": "cross-site"}, 403),  # an image of another page
        ("POST", "//evil", {}, 404),
        ("POST", f"http://{HOST}/mcp", {}, 404),
        ("POST", "/mcp/", {}, 404),
        ("POST", "/mcp?", {}, 404),
        ("POST", "/mcp?x=1", {}, 404),
        ("POST", "/%6dcp", {}, 404),
        ("POST", "/messages", {}, 404),
        ("GET", "/favicon.ico", {}, 404),
        ("OPTIONS", "*", {}, 404),
        ("OPTIONS", "/mcp", {}, 405),
        ("HEAD", "/mcp", {}, 405),
        ("PUT", "/mcp", {}, 405),
        ("POST", "/sse", {}, 405),
        ("GET", "/messages?session=abc", {}, 405),
        ("POST", "/mcp", {"Content_Type": "application/json; charset=utf-8"}, 0),
        ("POST", "/mcp", {"Content_Type": "Application/JSON"}, 0),
        ("POST", "/mcp", {"Content_Type": None}, 415),
        ("POST", "/mcp", {"Content_Type": "text/plain"}, 415),  # a page can send it unasked
        ("POST", "/mcp", {"Content_Type": "application/json-seq"}, 415),
        ("POST", "/mcp", {"Content_Encoding": "gzip"}, 415),
        ("POST", "/mcp", {"Upgrade": "websocket"}, 400),
        ("POST", "/mcp", {"Transfer_Encoding": "Chunked"}, 0),
        ("POST", "/mcp", {"Transfer_Encoding": "chunked, chunked"}, 400),
        ("POST", "/mcp", {"Expect": "100-continue"}, 0),
        ("POST", "/mcp", {"Expect": "the-impossible"}, 417),
        ("POST", "/mcp", {"Mcp-Param-At": "=?base64?w6Q=?="}, 0),
        ("POST", "/mcp", {"Mcp-Param-At": "\xe4"}, 400),
        ("POST", "/mcp", {"Mcp-Param-At": "\udce4"}, 400),  # bytes that are not UTF-8
        ("POST", "/mcp", {"Mcp-Param-At": "a\tb"}, 400),
        ("POST", "/mcp", {"Mcp-Name": ""}, 0),
        ("POST", "/mcp", {"Accept": "*/*"}, 0),
        ("POST", "/mcp", {"Accept": "text/event-stream;q=1, application/*"}, 0),
        ("POST", "/mcp", {"Accept": None}, 406),
        ("POST", "/mcp", {"Accept": "application/json"}, 406),
        ("POST", "/mcp", {"Accept": "text/event-stream"}, 406),
        ("GET", "/mcp", {"Accept": "text/event-stream"}, 0),
        ("GET", "/mcp", {"Accept": "application/json"}, 406),
        ("POST", "/messages?session=abc", {"Accept": None}, 0),  # 2024-11-05 has no rule for Accept
        # The kernel has authenticated the account; these headers are not read.
        ("POST", "/mcp", {"Authorization": "Bearer x", "Cookie": "a=b"}, 0),
        ("POST", "/mcp", {"X_Forwarded_Host": "evil.example", "Forwarded": "host=evil"}, 0),
    ],
)  # fmt: skip
def test_requests_that_are_accepted_or_rejected(
    method: str, target: str, changes: dict[str, str | None], status: int
) -> None:
    found = judge(_head(method, target, **changes), HOST)
    assert (found.status if isinstance(found, HttpRejection) else 0) == status


def test_the_endpoint_of_a_request() -> None:
    assert judge(_head("GET", "/sse"), HOST) == AcceptedRequest(HttpEndpoint.OLD_STREAM)
    old = judge(_head("POST", "/messages?session=a-b_c"), HOST)
    assert old == AcceptedRequest(HttpEndpoint.OLD_MESSAGES, "a-b_c")
    assert judge(_head("POST", "/"), HOST) == AcceptedRequest(HttpEndpoint.ENDPOINT)


def test_the_rejection_of_a_method_names_the_allowed_ones() -> None:
    found = judge(_head("OPTIONS", "/mcp"), HOST)
    assert isinstance(found, HttpRejection)
    assert found.allow == ("POST", "GET", "DELETE")


def test_accept_may_have_several_lines() -> None:
    head = RequestHead("GET", "/", (("Accept", "text/html"), ("accept", "text/event-stream")))
    assert accepts(head, "text/event-stream")
    assert not accepts(head, "application/json")
