"""Chromium by selenium, driven line by line. Runs inside the machine, by a Python of its own.

Has the interface of the probe: each line is a call whose code runs with the names of this file, and
the answer is the value of the name `result`. The arguments are the timeout of each wait, in
seconds, and those of the browser.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

POLL_S = 0.1
wait_s, *words = sys.argv[1:]
options = webdriver.ChromeOptions()
for word in words:
    options.add_argument(word)
driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))


def press(keys: str) -> None:
    """Type into the focused element, when the page is complete: its script has the listener."""
    wait(lambda: driver.execute_script("return document.readyState") == "complete")
    ActionChains(driver).send_keys(keys).perform()


def enter(text: str) -> None:
    r"""Type text, in which `\n` is Enter."""
    press(text.replace("\n", Keys.ENTER))


def wait(condition: Callable[[], Any]) -> Any:
    """Wait until the condition holds; return what it returns."""
    # The element is replaced on the page when it has changed, maybe while it is read.
    again = [NoSuchElementException, StaleElementReferenceException]
    return WebDriverWait(driver, float(wait_s), POLL_S, again).until(lambda _: condition())


def await_focus(field: str) -> None:
    """Wait until a field of this name has the focus, which comes after the page."""
    wait(lambda: driver.execute_script("return document.activeElement?.name") == field)


def find(kind: str, value: str) -> Any:
    """Return an element of the page, by its `ID` or `CLASS_NAME`."""
    return driver.find_element(getattr(By, kind), value)


def text() -> str:
    """Return the visible text of the page."""
    return str(driver.execute_script("return document.body?.innerText ?? ''"))


def forget() -> None:
    """Open a new window: logged out, and without anything of the last page."""
    driver.get("about:blank")
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.get_log("browser")


def main() -> None:
    """Run the code of each line of the input."""
    for line in sys.stdin:
        call = json.loads(line)
        names = globals() | {"result": None}
        try:
            exec(call["params"]["arguments"]["code"], names)
            told = names["result"]
        except Exception as error:  # noqa: BLE001 - the story that asked for it fails with it
            told = {"failed": repr(error), "at": driver.current_url, "text": text()}
        answer = {"jsonrpc": "2.0", "id": call["id"], "result": {"told": told}}
        print(json.dumps(answer), flush=True)
    driver.quit()


if __name__ == "__main__":
    main()
