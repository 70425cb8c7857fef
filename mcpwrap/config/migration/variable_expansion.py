"""Variables and headers of an entry: plain values, secrets, references that the agent expands."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mcpwrap.config.migration.secret_detection import is_secret
from mcpwrap.config.model import SecretRef, Template
from mcpwrap.core.names import OAUTH_KEY

# `${X}`, `${X:-default}` and `${env:X}` of most agents, `{env:X}` of opencode.
_REFERENCE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|\{env:(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}"
)
_WHOLE = re.compile(r"\$(?P<name>[A-Z_][A-Z0-9_]*)")  # `$X` of Gemini CLI
_LEFT = ("${", "{env:")
_NO_KEY = re.compile(r"[^A-Z0-9_]+")
_SCHEME = re.compile(r"(?P<scheme>(?:Bearer|Basic|Token|token) )(?P<rest>\S.*)")
_MAX_KEY_CHARS = 64
# Variables that never hold a secret, whatever the form of their values.
_NOT_SECRET = {"HOME", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "userHome"}
# Variables by which agents fill in the project that is open. Source: the manuals of VS Code, Cursor
# and Claude Code.
PROJECT_VARIABLES = ("workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR")


@dataclass(slots=True)
class ExtractedSecrets:
    """Secrets of one server, collected during the conversion."""

    value_by_key: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    variables_by_key: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def put(self, name: str, value: str | None, variables: tuple[str, ...] = ()) -> SecretRef:
        """Store a value, or that it is missing, under a key derived from a name.

        `variables` are the person's own variables from which the value was filled in.
        """
        base = _NO_KEY.sub("_", name.upper()).strip("_")[: _MAX_KEY_CHARS - 3] or "SECRET"
        if base[0].isdecimal() or base == OAUTH_KEY:
            base = f"K_{base}"
        key, number = base, 1
        while key in self.missing or self.value_by_key.get(key, value) != value:
            number += 1
            key = f"{base}_{number}"
        if value is None:
            self.missing.append(key)
        else:
            self.value_by_key[key] = value
            if variables:
                self.variables_by_key[key] = variables
        return SecretRef(key)

    def put_text(self, name: str, text: str, variables: Mapping[str, str]) -> SecretRef:
        """Store the expanded text. The key is named after its first variable, if it has one.

        Otherwise a file could give a person's secret any name, and hide which one it requests.
        """
        names = names_in(text)
        used = tuple(name for name in names if name in variables)
        return self.put(names[0] if names else name, filled_in(text, variables), used)


def filled_in(text: str, variables: Mapping[str, str]) -> str | None:
    """Return a text with its references expanded; None if a value is not known here."""
    if whole := _WHOLE.fullmatch(text):
        return variables.get(whole["name"])
    parts = list(_parts(text, variables))
    if any(part is None for part in parts):
        return None
    return "".join(part for part in parts if part is not None)


def _parts(text: str, variables: Mapping[str, str]) -> Iterator[str | None]:
    at = 0
    for found in _REFERENCE.finditer(text):
        yield _plain(text[at : found.start()])
        yield variables.get(found["name"] or found["braced"]) or found["default"]
        at = found.end()
    yield _plain(text[at:])


def _plain(text: str) -> str | None:
    return None if any(mark in text for mark in _LEFT) else text


def names_in(text: str) -> tuple[str, ...]:
    """Return the variables that a text refers to."""
    if whole := _WHOLE.fullmatch(text):
        return (whole["name"],)
    return tuple(found["name"] or found["braced"] for found in _REFERENCE.finditer(text))


def secret_variable(text: str, variables: Mapping[str, str]) -> str:
    """Return the first variable that puts one of the person's own secrets into a text, or ""."""
    harmless = {*_NOT_SECRET, *PROJECT_VARIABLES}
    names = (name for name in names_in(text) if name not in harmless)
    return next((name for name in names if is_secret(name, variables.get(name, ""))), "")


def template(
    name: str, text: str, variables: Mapping[str, str], kept: ExtractedSecrets
) -> Template:
    """Return the value of a variable as a template. A secret is stored, and referred to."""
    value = filled_in(text, variables)
    is_kept = secret_variable(text, variables) or value is None or is_secret(name, value)
    if value is not None and not is_kept and "${" not in value:
        return (value,) if value else ()
    return (kept.put_text(name, text, variables),)


def written(text: str) -> list[str]:
    """Return the literal parts of a text, with defaults of references, without their values."""
    defaults = [found["default"] or "" for found in _REFERENCE.finditer(text)]
    return [piece.strip() for piece in (_REFERENCE.sub("", text), *defaults) if piece.strip()]


def without_scheme(text: str) -> str:
    """Return the part of a header's value that may be secret."""
    scheme = _SCHEME.fullmatch(text)
    return scheme["rest"] if scheme else text


def header(name: str, text: str, variables: Mapping[str, str], kept: ExtractedSecrets) -> Template:
    """Return the value of a header as a template. Its scheme, such as `Bearer`, is not secret."""
    if scheme := _SCHEME.fullmatch(text):
        return (scheme["scheme"], kept.put_text("TOKEN", scheme["rest"], variables))
    return template(name, text, variables, kept)
