"""Requests in flight: a response answers one request, and their number is bounded."""

from mcpwrap.core.gate.in_flight import InFlight, RequestContext
from mcpwrap.core.protocol.methods import ProtocolEra

PING = RequestContext("ping", "", ProtocolEra.HANDSHAKE)
CALL = RequestContext("tools/call", "a", ProtocolEra.MODERN)


def test_a_question_is_answered_once() -> None:
    in_flight = InFlight()
    in_flight.add(1, PING)
    in_flight.add("1", CALL)
    assert 1 in in_flight
    assert in_flight.take(1) == PING
    assert 1 not in in_flight
    assert in_flight.take(1) is None
    assert in_flight.take("1") == CALL


def test_what_is_open_is_taken_at_once_and_the_cancelled_stay() -> None:
    in_flight = InFlight()
    for number, asked in ((1, PING), (2, CALL), (3, PING)):
        in_flight.add(number, asked)
    in_flight.cancel(3)
    assert in_flight.has_open()
    assert in_flight.take_open() == [(1, PING), (2, CALL)]
    assert not in_flight.has_open()
    assert in_flight.take_open() == []
    assert in_flight.take(3) == PING


def test_so_many_may_wait_and_no_more() -> None:
    in_flight = InFlight(max_open=2)
    in_flight.add(1, PING)
    assert not in_flight.is_full()
    in_flight.add(2, PING)
    assert in_flight.is_full()
    in_flight.cancel(1)
    assert not in_flight.is_full()


def test_of_the_cancelled_none_is_forgotten_and_what_is_too_many_stays_open() -> None:
    in_flight = InFlight(max_cancelled=2)
    for number in range(3):
        in_flight.add(number, PING)
        assert in_flight.cancel(number) == (number < 2)
    assert [number in in_flight for number in range(3)] == [True, True, True]
    assert in_flight.find(1) is None  # cancelled
    assert in_flight.find(2) == PING  # not
    assert in_flight.take(1) == PING  # and answered nevertheless
    assert in_flight.cancel(2)
