"""Interface of a session to the approval broker: requests for approval, and their outcomes."""

from collections.abc import Collection, Mapping
from typing import Literal, Protocol

import msgspec

from mcpwrap.core.approval.client_forms import ClientIdentity, FormAnswer
from mcpwrap.core.approval.document import Question
from mcpwrap.core.approval.entry import UnaskedCause
from mcpwrap.core.approval.views.preview import Preview
from mcpwrap.core.gate.executed_code import RunReport, SubmittedCode
from mcpwrap.core.gate.in_flight import RequestContext
from mcpwrap.core.pins.definitions import Definition, Kind
from mcpwrap.core.pins.pins_view import PinsView
from mcpwrap.core.policy.decision import AskingRules
from mcpwrap.core.protocol.json_value import Json


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request that the policy allows only with a person's approval."""

    method: str
    target: str
    definition: str  # hash of a tool that has changed since the server first listed it; else ""
    params: dict[str, Json]  # without `_meta`
    rule: str
    message: str  # the rule's
    expires_s: float
    in_client: bool = False  # the rule accepts an answer in the agent's own window
    by_form: bool = False  # the agent's window is going to ask, too
    asking: AskingRules = AskingRules()

    def question(self, agent_uid: int, server: str, policy: str) -> Question:
        """Return the question of an agent's account, which approvers are shown.

        `policy` is the digest of the policy in force.
        """
        return Question(
            agent_uid=agent_uid,
            server=server,
            method=self.method,
            target=self.target,
            definition=self.definition,
            params=self.params,
            policy=policy,
        )


class Approved(msgspec.Struct, frozen=True):
    """Outcome of asking: a person has approved the request, for one run."""

    id: str
    shown: str  # digest of what was shown
    by: str  # who, and by which channel


class AwaitingApproval(msgspec.Struct, frozen=True):
    """Outcome of asking: a person is asked, and the request is held."""

    id: str
    shown: str
    left_s: float | None = None  # until the question expires; None if it does not


class ApprovalUnavailable(msgspec.Struct, frozen=True):
    """Outcome of asking: no person is asked, and the request is refused."""

    why: str
    cause: UnaskedCause = "nobody"
    remedy: str = ""  # for the agent's user


class PolicyOwner(msgspec.Struct, frozen=True):
    """Owner of a session's policy, whom refusals name: root, or the user of `mcpwrap run`."""

    server: str
    is_user: bool = False


class ApprovalOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Later outcome of a held request: approved, denied, expired, void, or unasked."""

    hold: int
    what: Literal["approved", "denied", "expired", "void", "unasked"]
    by: str = ""
    reason: str = ""  # the person's, or why no person is asked
    remedy: str = ""  # for the agent's user, of one that is `unasked`
    stops: bool = False  # the session is to end


class Approvals(Protocol):
    """Interface of the approval broker. A hold is the number of a held request in its session."""

    state_key: bytes  # 32 random bytes, of this session alone

    def ask(
        self, hold: int, wanted: ApprovalRequest
    ) -> Approved | AwaitingApproval | ApprovalUnavailable:
        """Ask for a request, or use up an approval that was given for it."""

    def withdraw(self, hold: int, *, will_resume: bool) -> None:
        """Report that a request is not held any more; its question stays if it `will_resume`."""

    def show(self, hold: int, preview: Preview) -> None:
        """Show what a call would change beside its question, which may be decided by now."""

    def asks_by_form(self, client: ClientIdentity, *, in_client: bool) -> bool:
        """Return whether to ask in the agent's own window, where it declares forms.

        `in_client`: the rule accepts such an answer. A hub would answer in the place of the agent.
        """

    def take_form_answer(self, hold: int, client: ClientIdentity, answer: FormAnswer) -> None:
        """Take the answer of the agent's own window."""


class NoApprovals:
    """Approval broker of a session that has none, of `mcpwrap run --no-approver`."""

    state_key = bytes(32)  # nothing is ever sealed with it

    def ask(self, _hold: int, _wanted: ApprovalRequest) -> ApprovalUnavailable:
        """Return that approval is unavailable."""
        return ApprovalUnavailable(
            "`mcpwrap run --no-approver` asks no person",
            "no-approver",
            "Without that option it asks the user who runs the agent.",
        )

    def withdraw(self, _hold: int, *, will_resume: bool) -> None:
        """Do nothing: no request is held."""

    def show(self, hold: int, preview: Preview) -> None:
        """Do nothing: no request is held."""

    def asks_by_form(self, client: ClientIdentity, *, in_client: bool) -> bool:
        """Return that no window is asked."""
        del client, in_client
        return False

    def take_form_answer(self, hold: int, client: ClientIdentity, answer: FormAnswer) -> None:
        """Do nothing: no request is held."""


NO_APPROVALS = NoApprovals()


class AuditedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, to be recorded before it is carried out."""

    sender: str  # "agent" or "server"; "gate" of a preview
    method: str  # "" if it cannot be read
    target: str = ""  # a tool, a URI or a prompt
    id: int | str | None = None
    era: str = ""
    decision: str  # "allowed", "changed", or the kind of the note that says why not
    rule: str = ""
    why: str = ""
    watched: tuple[str, ...] = ()  # rules that matched and only watch
    params: dict[str, Json] | None = None  # of a request
    size: int = 0  # of the line it came in, in bytes
    approval: str = ""  # id of the question to a person
    shown: str = ""  # digest of what was shown
    by: str = ""  # who decided, and by which channel
    code: SubmittedCode | None = None  # of a call to a server that executes code
    run: RunReport | None = None  # of the response to one


class Audit(Protocol):
    """Interface of the audit, which records decisions."""

    def write(self, decided: AuditedDecision) -> bool:
        """Write a record; return whether it is written. If not, nothing is carried out."""


class PinnedResult(msgspec.Struct, frozen=True):
    """Result without the definitions that are held back; the same `value` if none are."""

    value: dict[str, Json]
    left_out: str = ""  # names and reasons, in printable ASCII
    listed: tuple[Definition, ...] = ()  # as the server sent them


class PinRefusal(msgspec.Struct, frozen=True):
    """Refusal of a request for what was not accepted."""

    text: str  # for the agent
    why: str  # for the journal
    code: str  # which the text has, too


class PinCheck(Protocol):
    """Interface of the comparison of a server's definitions with those that were accepted."""

    def take_result(self, context: RequestContext, value: dict[str, Json]) -> PinnedResult:
        """Take a result, before the policy changes it."""

    def refusal(self, method: str, params: Mapping[str, Json]) -> PinRefusal | None:
        """Return why a request is refused; None if it is not."""

    def take_view(self, view: PinsView) -> Collection[Kind]:
        """Take changed pins; return the kinds of which something was held back and is not now."""


class Collector(Protocol):
    """Interface of the collector of a server's definitions."""

    def take_result(self, context: RequestContext, value: dict[str, Json]) -> None:
        """Take a result, before the policy changes it."""

    def take_failure(self, context: RequestContext, code: Json) -> None:
        """Take the code of an error."""
