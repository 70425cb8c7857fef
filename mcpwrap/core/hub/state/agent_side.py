"""Agent of a hub's session: the era that it speaks, its capabilities, its profile."""

from dataclasses import dataclass, field

import msgspec

from mcpwrap.core.hub.agent_profiles import AgentProfile, profile_of
from mcpwrap.core.protocol.methods import PROTOCOL_VERSION
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    encoded,
    fields_at,
    fields_of,
    text_at,
)
from mcpwrap.core.protocol.server_revisions import CLIENT_CAPABILITIES, MODERN

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
# Keys of `_meta` that a request of the handshake era does not have.
ENVELOPE_KEYS = frozenset({PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL})
_EMPTY = msgspec.Raw(b"{}")
_INFO = msgspec.Raw(b'{"name":"mcpwrap-hub","version":"0"}')  # for an agent that names no other


def has_envelope(request: RawMessage) -> bool:
    """Return whether a request of the agent is one of 2026-07-28."""
    return PROTOCOL_VERSION in fields_at(fields_of(request.params), "_meta")


@dataclass(slots=True)
class AgentSide:
    """Agent of the session. Members are offered its capabilities, and no others."""

    revision: str = ""  # of its last request; "" before the first
    handshake: str | None = None  # revision that `initialize` has set
    capabilities: msgspec.Raw = field(default_factory=lambda: _EMPTY)
    info: msgspec.Raw = field(default_factory=lambda: _INFO)
    profile: AgentProfile | None = None
    log_level: str = ""  # that it has set by `logging/setLevel`
    is_gone: bool = False  # it has closed its end, and answers no question
    _of_handshake: Fields = field(default_factory=dict)

    @property
    def is_modern(self) -> bool:
        """Return whether its last request had an envelope (2026-07-28)."""
        return self.revision == MODERN

    def can(self, capability: str) -> bool:
        """Return whether it declares a capability, such as `sampling`."""
        return capability in fields_of(self.capabilities)

    def shake_hands(self, revision: str, params: Fields) -> None:
        """Take capabilities and name from `initialize`."""
        self.handshake = revision
        self._of_handshake = params
        self._take(revision, params.get("capabilities"), params.get("clientInfo"))

    def sends(self, revision: str, meta: Fields) -> None:
        """Take capabilities and name from the envelope of a request, or those of the handshake."""
        if revision == MODERN:
            self._take(MODERN, meta.get(CLIENT_CAPABILITIES), meta.get(CLIENT_INFO))
        elif self.is_modern and self.handshake is not None:
            self.shake_hands(self.handshake, self._of_handshake)

    def _take(
        self, revision: str, capabilities: msgspec.Raw | None, info: msgspec.Raw | None
    ) -> None:
        self.revision = revision
        self.capabilities = capabilities or _EMPTY
        if info is not None and info != self.info:
            self.info = info
            self.profile = profile_of(text_at(fields_of(info), "name"))

    def envelope(self) -> dict[str, msgspec.Raw]:
        """Return the keys of `_meta` by which a request of 2026-07-28 is one of this agent's."""
        keys = {
            PROTOCOL_VERSION: encoded(MODERN),
            CLIENT_CAPABILITIES: self.capabilities,
            CLIENT_INFO: self.info,
        }
        return keys | ({LOG_LEVEL: encoded(self.log_level)} if self.log_level else {})
