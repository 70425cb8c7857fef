"""Translation of a member's questions to the agent, between the two eras.

Until 2025-11-25 a server sends a request of its own, while the agent's call is open. Since
2026-07-28 it answers the call with `inputRequests`, and the agent repeats the call with the
responses. Source: SEP-2322.
"""

import msgspec

from mcpwrap.core.hub import delivery, errors
from mcpwrap.core.hub.state.hub_state import HubState, RoundQuestion
from mcpwrap.core.hub.state.member_side import MemberSide, OpenRequest, Round
from mcpwrap.core.protocol import methods, raw_message
from mcpwrap.core.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Id
from mcpwrap.core.protocol.raw_message import (
    Fields,
    RawMessage,
    encoded,
    fields_at,
    fields_of,
    id_at,
    text_at,
)
from mcpwrap.core.protocol.server_revisions import McpRequestError

MAX_ROUNDS = 32  # of one call
MAX_QUESTIONS = 32  # in one result, or for one call
MAX_SUSPENDED = 64  # calls that the agent has to repeat: it may never do so
_KEY = "1"  # of the one input request in a result of the hub's own
_STATE = "mcpwrap-hub/"
_CAPABILITY = {
    "sampling/createMessage": "sampling",
    methods.ELICITATION: "elicitation",
    "roots/list": "roots",
}


def capability_for(method: str) -> str:
    """Return the capability that an agent declares if it answers a server's request."""
    return _CAPABILITY.get(method, "")


# ------------------------------------------------------- a member's request, a modern agent
def ask_in_result(state: HubState, member: MemberSide, question: RawMessage) -> bool:
    """Answer an open call of the agent with a member's request; return False without such a call.

    Of several calls it is the oldest one: a server's request does not say what it belongs to.
    """
    for call_id, opened in member.open_by_id.items():
        if _may_be_asked(opened):
            opened.questions.append(question)
            if len(opened.questions) == 1:
                _ask_next(state, member, call_id, opened)
            return True
    return False


def _may_be_asked(opened: OpenRequest) -> bool:
    return (
        opened.is_modern
        and opened.request.method in methods.IN_ROUNDS
        and not opened.is_cancelled
        and opened.answer is None
        and len(opened.questions) < MAX_QUESTIONS
    )


def _ask_next(state: HubState, member: MemberSide, call_id: Id, opened: OpenRequest) -> None:
    question = opened.questions[0]
    key = f"{_STATE}{state.new_id()}"
    state.call_by_state[key] = (member.name, call_id)
    if len(state.call_by_state) > MAX_SUSPENDED:
        name, oldest_id = next(iter(state.call_by_state.values()))
        abandon(state, state.members[name], oldest_id)
    asked: dict[str, msgspec.Raw] = {
        "method": encoded(question.method),
        "params": question.params,
    }
    result = {
        "resultType": encoded("input_required"),
        "inputRequests": encoded({_KEY: encoded(asked)}),
        "requestState": encoded(key),
    }
    state.to_agent(raw_message.result(opened.agent_id, result))
    opened.is_suspended = True


def resume(state: HubState, member: MemberSide, request: RawMessage, params: Fields) -> bool:
    """Take the responses of a repeated call; return False if the call has no state of the hub's.

    `request` has the member's own names. It has to be of the member that asked: what the agent
    answers to one member never reaches another one.

    Raises:
        McpRequestError: no call waits for these responses.
    """
    key = text_at(params, "requestState")
    if not key.startswith(_STATE) or request.id is None:
        return False
    name, call_id = state.call_by_state.get(key, ("", 0))
    opened = member.open_by_id.get(call_id) if name == member.name else None
    if opened is None or not opened.is_suspended or request.method != opened.request.method:
        text = "requestState: no call waits for these responses"
        raise McpRequestError(INVALID_PARAMS, text)
    del state.call_by_state[key]
    opened.agent_id, opened.is_suspended = request.id, False
    token = id_at(fields_at(params, "_meta"), "progressToken")
    if opened.token is not None and token is not None:
        member.token_by_own[opened.token] = token
    question = opened.questions.pop(0)
    _respond(state, member, question, fields_at(params, "inputResponses").get(_KEY))
    if opened.answer is not None:
        delivery.respond(state, member, call_id, opened, opened.answer)
        for other in opened.questions:  # the member may have meant another call
            if not ask_in_result(state, member, other):
                _respond(state, member, other, None)
    elif opened.questions:
        _ask_next(state, member, call_id, opened)
    return True


def abandon(state: HubState, member: MemberSide, call_id: Id) -> None:
    """Cancel a suspended call at its member: the agent will not repeat it."""
    opened = member.take(call_id)
    forget_states(state, member.name, call_id)
    for question in opened.questions:
        _respond(state, member, question, None)
    params = {"requestId": call_id, "reason": "the agent has not answered"}
    state.to_member(member, raw_message.notification(methods.CANCELLED, params))


def forget_states(state: HubState, name: str, call_id: Id | None = None) -> None:
    """Remove the states of a member's suspended calls, or of one of them."""
    for key, (owner, owned_id) in list(state.call_by_state.items()):
        if owner == name and call_id in {None, owned_id}:
            del state.call_by_state[key]


def _respond(
    state: HubState, member: MemberSide, question: RawMessage, response: msgspec.Raw | None
) -> None:
    if question.id is None:
        return
    line = (
        raw_message.failure(question.id, INTERNAL_ERROR, "The agent has not answered")
        if response is None
        else raw_message.result(question.id, response)
    )
    state.to_member(member, line)


# ------------------------------------------------------- a result with questions, an older agent
def ask_in_requests(
    state: HubState, member: MemberSide, call_id: Id, opened: OpenRequest, result: msgspec.Raw
) -> None:
    """Send the input requests of a member's result to the agent, as requests."""
    found = fields_of(result)
    requested = fields_at(found, "inputRequests")
    questions = {key: fields_of(raw) for key, raw in requested.items()}
    number = opened.round.number + 1 if opened.round else 1
    if why := _why_not(state, questions, number):
        member.take(call_id)
        errors.unavailable(state, opened.as_agent_sent(), member, why)
        return
    params = fields_of(opened.request.params)
    if "requestState" in found:
        params["requestState"] = found["requestState"]
    opened.round = asked = Round(params, set(questions), {}, number)
    for key, question in questions.items():
        question_id = state.new_id()
        state.question_by_id[question_id] = RoundQuestion(member.name, call_id, key)
        state.to_agent(
            raw_message.request(
                question_id,
                text_at(question, "method"),
                fields_of(question.get("params", msgspec.Raw(b"{}"))),
            )
        )
    if not questions:
        _repeat(state, member, call_id, asked)


def _why_not(state: HubState, questions: dict[str, Fields], number: int) -> str:
    if number > MAX_ROUNDS:
        return f"it asked {MAX_ROUNDS} times within one call"
    if len(questions) > MAX_QUESTIONS:
        return f"it asked over {MAX_QUESTIONS} questions at once"
    if questions and state.agent.is_gone:
        return "it asks the agent, which has closed its end"
    for question in questions.values():
        method = text_at(question, "method")
        capability = capability_for(method)
        if not capability or not state.agent.can(capability):
            return f"it asks for {method!a}, which the agent has not declared"
    return ""


def answered(state: HubState, question: RoundQuestion, answer: RawMessage) -> None:
    """Take the agent's response to an input request."""
    member = state.members[question.member]
    opened = member.open_by_id.get(question.request_id)
    if opened is None or (asked := opened.round) is None:
        return
    if bytes(answer.error):
        end_round(state, member, question.request_id)
        why = f"the agent refused what it asked: {errors.reason_of(answer.error)}"
        errors.unavailable(state, opened.as_agent_sent(), member, why)
        return
    asked.missing.discard(question.key)
    asked.responses[question.key] = answer.result.copy()
    if not asked.missing:
        _repeat(state, member, question.request_id, asked)


def end_round(state: HubState, member: MemberSide, call_id: Id) -> None:
    """Withdraw the questions of a call, which its member does not know as open any more."""
    member.take(call_id)
    for question_id, question in list(state.question_by_id.items()):
        if isinstance(question, RoundQuestion) and (question.member, question.request_id) == (
            member.name,
            call_id,
        ):
            delivery.withdraw(state, question_id)


def _repeat(state: HubState, member: MemberSide, call_id: Id, asked: Round) -> None:
    """Send the call once more, under a new id, as the era requires."""
    params = {**asked.params, "inputResponses": encoded(asked.responses)}
    opened = member.take(call_id)
    repeated = msgspec.structs.replace(opened.request, params=encoded(params))
    member_id = state.own_id()
    delivery.send(state, member, repeated, opened.agent_id, member_id)
    again = member.open_by_id[member_id]
    again.round, again.request = asked, opened.request
