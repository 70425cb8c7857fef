"""Open preview requests of a session, with root's rules for them."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mcpwrap.core.approval.views.preview import Preview
from mcpwrap.core.protocol.jsonrpc import Id
from mcpwrap.core.wire.server_files import PreviewRule


@dataclass(frozen=True, slots=True)
class OpenPreview:
    """Preview request that the server has not answered."""

    hold: int
    preview: Preview  # without its text
    until_s: float


@dataclass(slots=True)
class Previews:
    """Previews of one session: root's rules by tool, and open requests by id."""

    rule_by_tool: Mapping[str, PreviewRule] = field(default_factory=dict)
    open: dict[Id, OpenPreview] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
