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
PHONE = f"{BED_AT}/tests/system/guest/phone.py"
ARGUMENTS = "--headless=new --disable-gpu --disable-dev-shm-usage --hide-scrollbars"
COMMAND = f"/opt/browser/bin/python -BP {DRIVER} {pace.WAIT_S} {ARGUMENTS}"
WIDTH = "document.documentElement.scrollWidth <= window.innerWidth"


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
        self.log_in_here(user, password)

    def log_in_here(self, user: str, password: str) -> None:
        """Fill in the login that is shown, and wait for what follows."""
        self.run("await_focus('user')")
        self.press(user)
        self.run("press(Keys.TAB)")
        self.run("await_focus('password')")
        self.press(password + "\n")
        self.run("wait(lambda: '/login' not in driver.current_url)")

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

    @property
    def fits(self) -> bool:
        """Whether the page needs no horizontal scrolling at the present size."""
        return bool(self.run(f"result = driver.execute_script('return {WIDTH}')"))

    def screenshot(self, path: Path) -> None:
        """Write the screen to a file on the host."""
        path.write_bytes(base64.b64decode(self.run("result = driver.get_screenshot_as_base64()")))


@contextmanager
def browser(machine: Machine, user: str) -> Iterator[Browser]:
    """Start a browser as this account."""
    with machine.session("", user=user, command=f"exec {COMMAND}") as session:
        yield Browser(session)


@contextmanager
def phone(machine: Machine, user: str) -> Iterator[Browser]:
    """Start a browser on a phone, which has only the page's port, by an SSH login as `user`."""
    command = f"exec /usr/bin/python3 -BP {PHONE} {user} {COMMAND}"
    with machine.session("", user="root", command=command) as session:
        window = Browser(session)
        window.looks(width=360, height=740, scheme="light", is_phone=True)
        yield window
