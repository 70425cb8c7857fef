"""Login of a person at a terminal, and the browser's part. Runs inside the machine, as a person."""

import subprocess
import sys
import urllib.request


def log_in(server: str, within_s: float) -> None:
    """Type `mcpwrap login`, open the page that it shows, and end with its status.

    The browser runs where the command listens.
    """
    argv = ["mcpwrap", "login", server, "--no-browser"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout
        for line in login.stdout:
            print(line, end="")
            if line.strip().startswith("https://"):
                with urllib.request.urlopen(line.strip(), timeout=within_s) as page:
                    print(page.read().decode())
    if login.returncode:
        sys.exit(login.returncode)
