"""Loop detection: calls with the same tool and arguments, counted in a window.

A loop makes no progress: the same call has the same answer. So the count of identical calls begins
anew when the answer changes, and all counts of an agent at a server begin anew when another call
there succeeds. A call without an answer yet is counted as if it had the last one. Only the call
that is repeated is refused. All times are of one monotonic clock, in seconds.
"""

from collections import deque

from mcpwrap.core.policy.decision import CallOutcome, LimitExceeded
from mcpwrap.core.policy.rules import LimitsEntry

COOL_DOWN_S = 30  # if the policy has no value
MAX_REPEATED = 64  # calls of one agent at one server; each successful one removes all others
_PARTS = 16  # of a window
# From here on the first answer is not compared: the second one counts as equal to it. So ordinary
# calls, which are not repeated, cost no digest of their answers.
_MANY = 10


class WindowCount:
    """Number of events in a sliding window; each is in it for 15 to 16 sixteenths of its length."""

    __slots__ = ("_parts", "number", "total")

    def __init__(self) -> None:
        self.total = 0
        self.number = -1  # of the part that `at` was last called for
        self._parts: deque[list[int]] = deque()  # number of each, and its events

    def at(self, now_s: float, window_s: int) -> int:
        """Remove the events that are too old by now; return the number of the others."""
        number = int(now_s * _PARTS / window_s)
        if number != self.number:
            self.number = number
            while self._parts and self._parts[0][0] <= number - _PARTS:
                self.total -= self._parts.popleft()[1]
            self._parts.append([number, 0])
        return self.total

    def add(self) -> None:
        """Count an event at the time that `at` was last called for."""
        self.total += 1
        self._parts[-1][1] += 1

    def restart(self) -> None:
        """Forget all events but one, at that time."""
        self._parts.clear()
        self._parts.append([self.number, 1])
        self.total = 1


class RepeatLimits:
    """Limits on repeated calls, of an entry of `limits`; 0 is no limit."""

    __slots__ = ("cool_down_s", "identical", "repeated", "repeated_s", "window_s")

    def __init__(self, limits: LimitsEntry) -> None:
        self.identical = limits.identical_calls or 0
        self.repeated = limits.repeated_calls or 0
        self.window_s = limits.window_s
        self.repeated_s = limits.repeated_s
        self.cool_down_s = cool_down_s(limits)


class _RepeatedCall:
    """Counts of one call of one agent."""

    __slots__ = ("answer", "asked", "unchanged", "until_s")

    def __init__(self) -> None:
        self.asked = WindowCount()
        self.unchanged = WindowCount()  # since another answer
        self.answer = b""  # the last one
        self.until_s = 0.0  # refused; afterwards one call is tried. 0.0: not refused

    def refuse(self, why: str, cool_down_s: int, now_s: float) -> LimitExceeded | None:
        """Refuse the call for the cool-down, and then let one be tried, and so on."""
        if now_s < self.until_s:
            return LimitExceeded(why, self.until_s - now_s, "loop")
        is_trial = bool(self.until_s)
        self.until_s = now_s + cool_down_s
        return None if is_trial else LimitExceeded(why, cool_down_s, "loop")


class RepeatedCalls:
    """Calls of one agent at one server since the last success of another one."""

    def __init__(self) -> None:
        self._call_by_digest: dict[bytes, _RepeatedCall] = {}  # the one last asked for is last

    def ask(self, digest: bytes, limits: RepeatLimits, now_s: float) -> LimitExceeded | None:
        """Count a call; return why it is refused now, or None."""
        call = self._call_by_digest.get(digest)
        if call is None or len(self._call_by_digest) > 1:
            call = self._put_last(digest, call)
        most, window_s = limits.identical, limits.window_s
        if most and call.unchanged.at(now_s, window_s) >= most:
            why = f"this call had the same answer {most} times in {_words(window_s)}"
        else:
            most, window_s = limits.repeated, limits.repeated_s
            is_over = most and call.asked.at(now_s, window_s) >= most
            why = f"this call came {most} times in {_words(window_s)}" if is_over else ""
        if not why:
            call.until_s = 0.0
        elif held := call.refuse(why, limits.cool_down_s, now_s):
            return held
        if limits.identical:
            call.unchanged.add()
        if limits.repeated:
            call.asked.add()
        return None

    def _put_last(self, digest: bytes, call: _RepeatedCall | None) -> _RepeatedCall:
        calls = self._call_by_digest
        calls.pop(digest, None)
        call = calls[digest] = call or _RepeatedCall()
        if len(calls) > MAX_REPEATED:
            del calls[next(iter(calls))]
        return call

    def needs_answer(self, digest: bytes, limits: RepeatLimits) -> bool:
        """Return whether the answer to a call is to be compared with the one before."""
        if not limits.identical:
            return False
        call = self._call_by_digest.get(digest)
        return call is not None and (call.unchanged.total > 1 or limits.identical < _MANY)

    def report(self, outcome: CallOutcome) -> None:
        """Compare the answer to a call with the one before; if it succeeded, forget all others."""
        calls = self._call_by_digest
        if not calls:
            return
        call = calls.get(outcome.call_digest)
        if not outcome.failed and len(calls) != (call is not None):
            calls.clear()
            if call is not None:
                calls[outcome.call_digest] = call
        if call is not None and outcome.answer_digest:
            if call.answer and call.answer != outcome.answer_digest:
                call.unchanged.restart()
            call.answer = outcome.answer_digest


def cool_down_s(limits: LimitsEntry) -> int:
    """Return how long calls are refused once a limit other than the rate is reached."""
    return limits.cool_down_s or COOL_DOWN_S


def _words(seconds: int) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
