"""Instructions of all members in the room that agents read.

Claude Code cuts instructions at 2048 characters without a word, so that the first member would
take the room of all.
"""

from collections.abc import Mapping

MAX_CHARS = 2048
_CUT = " […]"


def combined(members: Mapping[str, tuple[str, str]]) -> str:
    """Return one text of all members' instructions, given with the namespace of each by name.

    The names of all come first. The room is shared: what a short text leaves, a long one gets.
    """
    if not members:
        return ""
    names = ", ".join(
        f"{name} ({namespace}__…)" if namespace else name
        for name, (namespace, _) in members.items()
    )
    head = f"Servers behind this one: {names}. The tool mcpwrap_status says which are there."
    head = head if len(head) <= MAX_CHARS else head[: MAX_CHARS - len(_CUT)] + _CUT
    texts = {name: text.strip() for name, (_, text) in members.items() if text.strip()}
    room = MAX_CHARS - len(head) - sum(len(_title(name)) for name in texts)
    parts = []
    for count, name in enumerate(sorted(texts, key=lambda each: len(texts[each]))):
        share = max(0, room) // (len(texts) - count)
        text = texts[name]
        if len(text) > share:
            text = text[: max(0, share - len(_CUT))] + _CUT if share > len(_CUT) else ""
        room -= len(text)
        parts.append((name, text))
    return head + "".join(f"{_title(name)}{text}" for name, text in sorted(parts) if text)


def _title(name: str) -> str:
    return f"\n\n# {name}\n"
