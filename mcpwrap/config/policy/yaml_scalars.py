"""Conversion of YAML to JSON values. A scalar that YAML readers read differently is refused."""

import math
import re

from mcpwrap.config.policy.yaml_tree import Items, Node, Scalar
from mcpwrap.config.value_parsers import BadValueError
from mcpwrap.core.protocol.json_value import Json

_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "~": None, "": None}
# Booleans of YAML 1.1, and words in other capitals (yaml.org/type/bool.html).
WORDS_TO_SOME = {"yes", "no", "on", "off", "y", "n", "true", "false", "null"}
_INT = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# YAML 1.1: signs, underscores, octal, hexadecimal, base 60, `.5`, infinity, dates.
_NUMBER_TO_SOME = re.compile(
    r"[-+]?([0-9][0-9_]*(:[0-9][0-9_]*)*(\.[0-9_]*)?|0[xob][0-9a-fA-F_]+|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?"
)


def json_of(node: Node) -> Json:
    """Return the value of a node.

    Raises:
        BadValueError: YAML readers read a part of it differently.
    """
    if isinstance(node, Scalar):
        return scalar(node)
    if isinstance(node, Items):
        return [json_of(item) for item in node.items]
    return {text_of(key): json_of(value) for key, value in node.entries}


def text_of(node: Node) -> str:
    """Return the text of a node.

    Raises:
        BadValueError: it is not text, or some YAML readers do not read it as text.
    """
    value = json_of(node)
    if not isinstance(value, str):
        raise BadValueError(
            f"{kind_of(value)} where text belongs", "write text, in quotes", code="E-POLICY-TYPE"
        )
    return value


def scalar(node: Scalar) -> Json:
    """Return the value of a scalar that YAML 1.1 and 1.2 read alike.

    Raises:
        BadValueError: they differ.
    """
    text = node.text
    if node.is_quoted:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text.lower() in WORDS_TO_SOME:
        raise BadValueError(
            f"`{text}` is true, false or null to some readers of YAML",
            f'write `true`, `false` or `null`; as text `"{text}"`',
            code="E-POLICY-YAML-AMBIGUOUS",
        )
    if _FLOAT.fullmatch(text):
        return _number(text)
    if _NUMBER_TO_SOME.fullmatch(text):
        raise BadValueError(
            f"`{text}` is a number or a date to some readers of YAML",
            f'write a plain decimal number; as text `"{text}"`',
            code="E-POLICY-YAML-AMBIGUOUS",
        )
    return text


def kind_of(value: Json) -> str:
    """Return the kind of a value, for an error."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return "nothing" if value is None else names.get(type(value), "a table")


def _number(text: str) -> int | float:
    # Before `int`, which takes at most 4300 digits, and takes 309 digits that no float can hold.
    if math.isinf(float(text)):
        raise BadValueError(
            "a number that is too big", "write a smaller one", code="E-POLICY-NUMBER"
        )
    return int(text) if _INT.fullmatch(text) else float(text)
