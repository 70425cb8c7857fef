"""Chromium in a machine, in front of the page for approvals: what a person does and sees."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.bed.machine import Machine
from tests.system.bed.session import Session

PAGE = "http://127.0.0.1:52080"
PATIENCE_S = 10
# Takes what the probe of `session.py` takes; besides it has the browser at hand.
DRIVE = f"""\
import json, sys
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait
options = webdriver.ChromeOptions()
for word in sys.argv[1:]:
    options.add_argument(word)
driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
def press(keys):
    ActionChains(driver).send_keys(keys).perform()
def wait(condition):
    # What waits is replaced on the page when it has changed, maybe while it is looked at.
    again = [NoSuchElementException, StaleElementReferenceException]
    return WebDriverWait(driver, {PATIENCE_S}, 0.1, again).until(lambda _: condition())
def text():
    return driver.execute_script("return document.body?.innerText ?? ''")
for line in sys.stdin:
    call = json.loads(line)
    names = globals() | {{"result": None}}
    try:
        exec(call["params"]["arguments"]["code"], names)
        told = names["result"]
    except Exception as error:
        told = {{"failed": repr(error), "at": driver.current_url, "text": text()}}
    answer = {{"jsonrpc": "2.0", "id": call["id"], "result": {{"told": told}}}}
    print(json.dumps(answer), flush=True)
driver.quit()
"""
ARGUMENTS = "--headless=new --disable-gpu --disable-dev-shm-usage --hide-scrollbars"


class Browser:
    """One window. Each of these fails the test where the browser does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, code: str, **values: Any) -> Any:
        """Run Python beside the browser; return what it leaves in `result`."""
        told = self._session.evaluate("".join(f"{n} = {v!r}\n" for n, v in values.items()) + code)
        assert not (isinstance(told, dict) and "failed" in told), told
        return told

    def open(self, path: str) -> None:
        """Go to one of our pages."""
        self.run("driver.get(url)", url=f"{PAGE}{path}")

    def sees(self, words: str) -> None:
        """Wait until these words can be read."""
        self.run("wait(lambda: words in text())", words=words)

    @property
    def text(self) -> str:
        """What can be read now."""
        return str(self.run("result = text()"))

    @property
    def path(self) -> str:
        """Where we are."""
        return str(self.run("result = driver.current_url")).removeprefix(PAGE)

    def press(self, keys: str) -> None:
        r"""Type, wherever the focus is; `\n` is Enter."""
        self.run("press(keys.replace('\\n', Keys.ENTER))", keys=keys)

    def is_at(self, path: str) -> None:
        """Wait until we are at a page of ours that begins like this."""
        self.run("wait(lambda: driver.current_url.startswith(url))", url=f"{PAGE}{path}")

    def log_in(self, user: str, password: str) -> None:
        """Log in with the keyboard alone: the first field has the focus."""
        self.open("/login")
        self.press(user)
        self.run("press(Keys.TAB)")
        self.press(password + "\n")
        self.run("wait(lambda: not driver.current_url.endswith('/login'))")

    def cookie(self) -> str:
        """Return the session's cookie, as somebody has it who stole it."""
        return str(self.run("result = driver.get_cookie('mcpwrap')['value']"))

    def looks(self, *, width: int, height: int, scheme: str, is_phone: bool) -> None:
        """Have another screen, and other colours."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        scheme_ = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        code = "driver.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', metrics)\n"
        code += "driver.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': touch})\n"
        code += "driver.execute_cdp_cmd('Emulation.setEmulatedMedia', media)"
        self.run(code, metrics=metrics, media=scheme_, touch=is_phone)

    def screenshot(self, path: Path) -> None:
        """Write what is seen to a file on the host."""
        path.write_bytes(base64.b64decode(self.run("result = driver.get_screenshot_as_base64()")))


@contextmanager
def browser(machine: Machine, user: str) -> Iterator[Browser]:
    """Start a browser as this account."""
    machine.write("/opt/drive.py", DRIVE)
    command = f"exec /opt/browser/bin/python /opt/drive.py {ARGUMENTS}"
    with machine.session("", user=user, command=command) as session:
        yield Browser(session)
