"""Call of a hub's session that led to a call of a member, so that a person is asked once for both.

The session of the member has the call, and derives from it the document that a person was shown for
the hub's session. It is the same call if the document has the same digest: so an approval covers no
other tool and no other arguments, whatever the hub does. A call whose tool was changed since the
session began is asked for again, and so is each further round of a multi-round request.
"""

from msgspec.structs import replace

from mcpwrap.core.approval.document import Question
from mcpwrap.core.hub.names import SEPARATOR, STATUS_TOOL, exposed_name
from mcpwrap.core.protocol import methods
from mcpwrap.core.wire.server_files import AccessList

_BY_NAME = frozenset({methods.TOOLS_CALL, "prompts/get"})


class OuterCalls:
    """Calls of a hub, as far as they lead to one of its members."""

    def __init__(self, hub: str, member: str, admissions: AccessList) -> None:
        """`hub` is "" for a session that no hub has opened."""
        self._hub = hub
        rule = admissions.by_server.get(hub)
        namespaces = {one.name: one.namespace for one in rule.hub} if rule else {}
        self._namespace = namespaces.pop(member, None)
        self._others = frozenset(namespaces.values())

    def question(self, question: Question) -> Question | None:
        """Return the question for the hub's call; None if it cannot be derived.

        `question` is that for the member's call.
        """
        name = self._exposed(question.target) if question.method in _BY_NAME else None
        if name is None or question.definition:
            return None
        params = {**question.params, "name": name}
        return replace(question, server=self._hub, target=name, params=params)

    def _exposed(self, name: str) -> str | None:
        """Return the name at the hub, if it can be of no other member."""
        if self._namespace is None or self._namespace in self._others:
            return None
        exposed = exposed_name(self._hub, self._namespace, name)
        prefixes = tuple(f"{other}{SEPARATOR}" for other in self._others if other)
        if exposed is None or exposed == STATUS_TOOL:
            return None
        return exposed if self._namespace or not exposed.startswith(prefixes) else None
