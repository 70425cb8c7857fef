"""Chromium in a machine, driven on the approval page as a person uses it."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.shared import pace
from tests.system.bed.machine import BED_AT, Machine
from tests.system.bed.session import Session

PAGE = "http://127.0.0.1:52080"
DRIVER = f"{BED_AT}/tests/system/guest/chromium.py"
ARGUMENTS = "--headless=new --disable-gpu --disable-dev-shm-usage --hide-scrollbars"


class Browser:
    """One browser window. Each method fails the test if the browser reports a failure."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, code: str, **values: Any) -> Any:
        """Run Python in the browser's process; return the value of `result`."""
        told = self._session.evaluate("".join(f"{n} = {v!r}\n" for n, v in values.items()) + code)
        assert not (isinstance(told, dict) and "failed" in told), told
        return told

    def open(self, path: str) -> None:
        """Open one of our pages."""
        self.run("driver.get(url)", url=f"{PAGE}{path}")

    def sees(self, words: str) -> None:
        """Wait until this text is visible."""
        self.run("wait(lambda: words in text())", words=words)

    @property
    def text(self) -> str:
        """Visible text."""
        return str(self.run("result = text()"))

    @property
    def path(self) -> str:
        """Path of the present page."""
        return str(self.run("result = driver.current_url")).removeprefix(PAGE)

    def press(self, keys: str) -> None:
        r"""Type into the focused element; `\n` is Enter."""
        self.run("enter(keys)", keys=keys)

    def is_at(self, path: str) -> None:
        """Wait until the URL is one of our pages with this prefix."""
        self.run("wait(lambda: driver.current_url.startswith(url))", url=f"{PAGE}{path}")

    def forget(self) -> None:
        """Open a new window, in which no account is logged in."""
        self.run("forget()")

    def log_in(self, user: str, password: str) -> None:
        """Log in by keyboard only: the first field has the focus."""
        self.open("/login")
        self.run("await_focus('user')")
        self.press(user)
        self.run("press(Keys.TAB)")
        self.run("await_focus('password')")
        self.press(password + "\n")
        self.run("wait(lambda: not driver.current_url.endswith('/login'))")

    def cookie(self) -> str:
        """Return the session's cookie, as a thief would have it."""
        return str(self.run("result = driver.get_cookie('mcpwrap')['value']"))

    def looks(self, *, width: int, height: int, scheme: str, is_phone: bool) -> None:
        """Set another screen size, and other colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        scheme_ = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        code = "driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', metrics)\n"
        code += "driver.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': touch})\n"
        code += "driver.execute_cdp_cmd('Emulation.setEmulatedMedia', media)"
        self.run(code, metrics=metrics, media=scheme_, touch=is_phone)

    def screenshot(self, path: Path) -> None:
        """Write the screen to a file on the host."""
        path.write_bytes(base64.b64decode(self.run("result = driver.get_screenshot_as_base64()")))


@contextmanager
def browser(machine: Machine, user: str) -> Iterator[Browser]:
    """Start a browser as this account."""
    command = f"exec /opt/browser/bin/python -BP {DRIVER} {pace.WAIT_S} {ARGUMENTS}"
    with machine.session("", user=user, command=command) as session:
        yield Browser(session)
