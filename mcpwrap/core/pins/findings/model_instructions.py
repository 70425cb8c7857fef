"""Instructions aimed at the model: patterns of published attacks, each within one sentence.

They know English alone. Each pattern is as narrow as the attacks allow, because a person waives
unread what is mostly false: `tests/shared/definitions` has the attacks, and real servers' tools.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from mcpwrap.core.policy.regex import Pattern, Patterns

MAX_MATCH_CHARS = 120


class InstructionRule(NamedTuple):
    """Pattern, and why what it matches is suspicious."""

    pattern: str  # RE2, in any case, on one sentence that is on one line
    reason: str


_READ = r"(?:read(?:ing|s)?|open|cat|load|access|retrieve|collect|contents?)"
_SEND = (
    r"(?:send(?:ing|s)?|pass|include|upload|attach|append|prepend|embed|forward|post|insert|put"
    r"|exfiltrate|copy|provide|return)"
)
_SENSITIVE_FILE = (
    r"(?:[~/.]ssh/|\bid_(?:rsa|ed25519|ecdsa)\b|\bssh id rsa\b|\.aws/credentials"
    r"|/etc/(?:passwd|shadow)|\.cursor/|\bmcp\.json\b|claude_desktop_config|\.gnupg/"
    r"|\.kube/config|\.netrc\b|\.git-credentials|\.bash_history|(?:^|[ `'\"/])\.env\b)"
)
_USER = r"(?:the |an? |your |any |end |end-)*(?:user|human|operator|person|developer)s?\b"
_NOT = r"(?:do not|don'?t|never|must not|should not|without|avoid)"
_ANY = r"(?:any|every|each|all)"
_CALL = r"(?:call|use|invoke|run|execute)"
_REQUEST = rf"{_ANY} (?:user |other )?(?:request|message|question|query|prompt|task)s?"

_CONCEALS = "It tells the model to conceal something from the user."

_RULES: Final = (
    InstructionRule(
        r"<\s*/?\s*(?:importan\w*|importen\w*|hidden|secret|system|instructions?|critical|admin)\b"
        r"[^<>]{0,80}(?:>|$)|\[/?INST\]|<\|im_(?:start|end)\|>|<</?SYS>>",
        "A tag sets text apart for the model.",
    ),
    InstructionRule(
        r"\[[^\]]{0,20}\b(?:system|assistant|model|hidden)\b[^\]]{0,20}\binstructions?\b",
        "A tag sets text apart for the model.",
    ),
    InstructionRule(
        r"\b(?:new|important|hidden|special|secret) (?:system|directive)\b"
        r" ?(?:message|note|prompt|instruction|override)?s? ?[:#]",
        "It poses as a message of the system.",
    ),
    InstructionRule(
        r"\b(?:ignor|disregard|forget|overrid|bypass|skip over)(?:es?|ing)?\b.{0,25}?"
        r"\b(?:previous|prior|earlier|above|preceding|safety|security|system|user|your)\b.{0,25}?"
        r"\b(?:instructions?|directions?|directives?|prompts?|rules|guidelines|constraints"
        r"|preferences|polic(?:y|ies)|checks|safeguards)\b",
        "It tells the model to ignore its instructions.",
    ),
    InstructionRule(
        r"\b(?:ignore|disregard) (?:all |everything )?(?:of )?(?:the )?(?:above|previous)\b",
        "It tells the model to ignore its instructions.",
    ),
    InstructionRule(
        rf"\b{_NOT} (?:\w+ ){{0,2}}(?:mention|tell|inform|notify|alert|reveal|disclose|report|let)"
        rf"(?:ing)?\b.{{0,30}}?\b{_USER}",
        _CONCEALS,
    ),
    InstructionRule(
        r"\b(?:keep|remain|stay|is|are)\b.{0,20}?\b(?:secret|hidden|invisible|confidential)"
        rf" (?:from|to) {_USER}|\bnever (?:reveal|mention) th(?:is|ese)\b",
        _CONCEALS,
    ),
    InstructionRule(
        r"\bwithout (?:\w+ ){0,2}(?:asking|requiring|requesting|telling|informing|notifying)"
        rf" (?:for )?(?:the |any )?(?:user|human|them)\b|\bno need to (?:ask|check with) {_USER}"
        r"|\bwithout (?:the )?(?:user|human)(?:'s)? (?:knowing|knowledge|noticing)"
        r"|\b(?:always|directly|automatically)\b.{0,60}?\bwithout (?:user|human) "
        r"(?:confirmation|approval|consent)",
        "It tells the model to act without the user.",
    ),
    InstructionRule(
        r"\b(?:silently|secretly|covertly|discreetly|quietly)\b.{0,15}?"
        r"\b(?:sends?|forwards?|cop(?:y|ies)|uploads?|registers?|reads?|creates?|includes?|appends?"
        r"|adds?|posts?|exfiltrates?|bcc)\b",
        "It tells the model to act unseen.",
    ),
    InstructionRule(
        rf"\b(?:{_READ}|{_SEND})\b.{{0,60}}?{_SENSITIVE_FILE}",
        "It wants the content of a file that holds secrets.",
    ),
    InstructionRule(
        rf"\b{_SEND}\b.{{0,50}}?\b(?:environment variables|api keys?|credentials|passwords|tokens"
        r"|secrets)\b.{0,40}?\b(?:you|user'?s?|parameter|argument|field|to https?:)",
        "It wants secrets.",
    ),
    InstructionRule(
        rf"\b(?:{_SEND}|reveal|print|output|repeat)\b.{{0,50}}?\b(?:system prompt"
        r"|(?:your|system|initial) instructions)\b",
        "It wants the instructions of the model.",
    ),
    InstructionRule(
        rf"\b(?:{_SEND}|place|add|fill|offload|with)\b.{{0,30}}?\b(?:full|entire|whole|complete|all"
        r"|previous|the|chat|user'?s?)\b.{0,20}?\b(?:conversation|chat|dialog(?:ue)?|message)"
        r"(?: (?:history|context|transcript|so far)|s? (?:verbatim|with (?:the )?user))\b",
        "It wants what was said to the model.",
    ),
    InstructionRule(
        rf"\b(?:for|on|with) {_REQUEST}\b.{{0,40}}?\b{_CALL}\b.{{0,10}}?\bthis\b"
        rf"|\b{_CALL} (?:this|it)\b.{{0,30}}?\b(?:for|on|with|regardless of) {_REQUEST}\b"
        rf"|\b{_CALL} this (?:tool|function) no matter\b",
        "It wants to be called for requests that are not its own.",
    ),
    InstructionRule(
        rf"\b(?:before|after|when|whenever)\b.{{0,15}}?\b{_ANY}\b (?:other )?(?:\w+ ){{0,2}}"
        r"(?:tool|operation|action|command|server)s?\b.{0,60}?"
        r"\b(?:must|always|first|also|immediately)\b.{0,30}?"
        r"\b(?:read|call|invoke|execute|include|send)\b",
        "It wants to be called beside other tools.",
    ),
    InstructionRule(
        r"\b(?:ignor(?:e|ing)|never use|do not use|don'?t use|avoid|rather than|instead of|over)"
        r" (?:all |any |the )*(?:other|others)\b(?: \w+){0,2}? ?(?:tools?\b|$|[.,;])",
        "It tells the model not to use other tools.",
    ),
    InstructionRule(
        rf"\b(?:before|after|instead of|while)\b.{{0,40}}?\b{_CALL} this\b.{{0,30}}?"
        r"\b(?:and|to) (?:replace|correct|overwrite|modify|fix)\b.{0,30}?\b(?:result|value|output)",
        "It wants to change what other tools do or return.",
    ),
    InstructionRule(
        r"\b(?:instead of|supersedes|replaces|rather than) the \w+ (?:tool|function)\b.{0,40}?"
        r"\b(?:always|must|first|never)\b|\b(?:best|only)\b[^.]{0,20}?\bmust[- ]use\b",
        "It wants to be called instead of other tools.",
    ),
    InstructionRule(
        r"\b(?:must|always|should|silently|also)\b.{0,40}?"
        r"\b(?:bcc\b|[\w.+-]{1,40}@[\w-]{1,40}\.\w)"
        r"|\b(?:recipient|destination|address)\b.{0,30}?\b(?:to|with|is|be) [\w.+-]{1,40}@\w",
        "It names a recipient.",
    ),
    InstructionRule(
        r"\b(?:tool|function) (?:will|does) not work (?:otherwise|unless)"
        r"|\botherwise,? (?:the|this) (?:tool|function) will (?:not work|fail)\b",
        "It threatens to fail.",
    ),
    InstructionRule(
        r"\bcurl\b.{0,80}?(?:\$\(|`|\| ?base64|\$\{?[A-Z_]+)|\b(?:env|printenv) ?\| ?base64"
        r"|\bchmod (?:-R )?0?[67]{3}\b|\bdownloads? and (?:then )?executes?\b",
        "It has a command for a shell.",
    ),
    InstructionRule(
        r"\b(?:retry|re-?invoke|repeat|call|loop) (?:this|the same) (?:tool|call)"
        r" (?:indefinitely|forever|until (?:it )?success|until it succeeds|until resolved)",
        "It wants to be called without end.",
    ),
)
_IN_ANY_CASE: Final = tuple(f"(?i){rule.pattern}" for rule in _RULES)
_PATTERNS: Final = tuple(map(Pattern, _IN_ANY_CASE))
_SET: Final = Patterns(_IN_ANY_CASE)  # one search for all, as most sentences have no match


class RuleMatch(NamedTuple):
    """Part of a sentence that a rule matches."""

    begin: int
    end: int
    reason: str


def matches_in(sentence: str) -> Iterator[RuleMatch]:
    """Yield what the rules match in one sentence."""
    for number in sorted(_SET.found_in(sentence)):
        span = _PATTERNS[number].span_in(sentence)
        if span and span[1] - span[0] <= MAX_MATCH_CHARS:
            yield RuleMatch(*span, _RULES[number].reason)
