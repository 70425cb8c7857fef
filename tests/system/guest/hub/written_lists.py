"""Lists of a member that a story writes into a file, as an update of its package would change them.

The file is a JSON object: entries by the key of their list, and `about`, members of the server's
description of itself. A member with the variable LOGIN reads the file of that name beside it, as a
server whose tools differ by login. The file is read again for each request.
"""

import json
import os
from pathlib import Path

from tests.system.guest.hub.member_lists import SPEC, Json, MemberLists

LOGIN = "LOGIN"


class WrittenLists(MemberLists):
    """Lists of a member, of a file."""

    def __init__(self, name: str, file: str, page: int) -> None:
        super().__init__(name, 0, page)
        login = os.environ.get(LOGIN, "")
        self._file = Path(file).with_suffix(f".{login}.json" if login else ".json")
        self._read()

    def _read(self) -> Json:
        written: Json = json.loads(self._file.read_text())
        about: Json = written.pop("about")
        self._entries = written
        return about

    def handshake(self, revision: str) -> Json:
        return {**super().handshake(revision), **self._read()}

    def discovery(self) -> Json:
        about = self._read()
        info = {SPEC + "serverInfo": about.pop("serverInfo")}
        return {**super().discovery(), **about, "_meta": info}

    def page(self, method: str, cursor: str | None) -> Json:
        self._read()
        return super().page(method, cursor)

    def add(self, kind: str) -> None:
        """Read the file again: the member then tells of the change."""
        self._read()

    def tool_names(self) -> set[str]:
        self._read()
        return super().tool_names()
