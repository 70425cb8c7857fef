"""HTTP status of each JSON-RPC error and each refusal."""

import pytest

from mcpwrap.core.http import status_codes


@pytest.mark.parametrize(
    ("code", "method", "status"),
    [
        (-32601, "tools/call", 404),
        (-32601, "server/discover", 400),  # by it agents recognize a server of an older era
        (-32020, "tools/call", 400),
        (-32021, "tools/call", 400),
        (-32022, "server/discover", 400),
        (-32602, "tools/call", 400),
        (-32600, "tools/call", 400),
        (-32700, "tools/call", 400),
        (-32603, "tools/call", 200),
        (-31403, "tools/call", 200),
    ],
)
def test_of_an_error(code: int, method: str, status: int) -> None:
    assert status_codes.of_error(code, method) == status


@pytest.mark.parametrize(
    ("exit_status", "status"),
    [(77, 403), (78, 404), (75, 503), (69, 503), (70, 502), (76, 502), (64, 502), (999, 502)],
)
def test_of_a_refusal_of_the_gate(exit_status: int, status: int) -> None:
    assert status_codes.of_refusal(exit_status) == status
