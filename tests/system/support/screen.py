"""Terminal of a person inside the machine: a program in tmux, its screen, and keys for it."""

import shlex
import time
from collections.abc import Iterable
from typing import Self

from tests.shared import pace
from tests.system.bed.machine import Machine

GONE_WITHIN_S = 3.0  # a screen after its key
TMUX = "LANG=C.UTF-8 tmux -u"


class Screen:
    """Program at a terminal, for the time of a `with` block."""

    def __init__(
        self, machine: Machine, user: str, command: str, *, columns: int = 110, rows: int = 40
    ) -> None:
        self._machine, self._user = machine, user
        size = f"-x {columns} -y {rows}"
        self._start = f"-f /dev/null new-session -d {size} {shlex.quote(command)}"

    def start(self) -> None:
        """Start the program."""
        self._tmux(self._start)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server || true")

    def _tmux(self, command: str) -> str:
        return self._machine.as_user(self._user, f"{TMUX} {command}").out

    def text(self) -> str:
        """Return the screen."""
        return self._tmux("capture-pane -p")

    def until(self, *texts: str) -> str:
        """Wait until all of these are on the screen, and return it."""
        screen = self._machine.call("terminal", "awaited", pace.WAIT_S, texts, user=self._user)
        missing = [text for text in texts if text not in screen]
        assert not missing, f"not seen: {missing}\n{screen}"
        return str(screen)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names of them."""
        self._tmux(f"send-keys {' '.join(keys)}")

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux(f"send-keys -l {shlex.quote(text)}")

    def await_end(self) -> None:
        """Wait until the program has ended."""
        left = self._machine.call("terminal", "await_end", pace.WAIT_S, user=self._user)
        assert left == 0, "the program goes on"

    def press_in_turn(self, keys: Iterable[tuple[str, str]]) -> None:
        """Press each key once the text beside it is on the screen; the last until it has gone.

        A program that draws its screen anew may lose a key.
        """
        *first, (last_text, last_key) = keys
        for text, key in first:
            self.until(text)
            self.press(key)
        self.until(last_text)
        pace.until(lambda: self._leaves(last_key, last_text))

    def _leaves(self, key: str, text: str) -> bool:
        """Press a key; return whether a text has gone within a moment."""
        self.press(key)
        give_up_at_s = time.monotonic() + GONE_WITHIN_S
        while text in self.text():
            if time.monotonic() > give_up_at_s:
                return False
        return True
