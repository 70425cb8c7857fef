"""The environment of a server: built from nothing, so that nothing leaks in."""

from collections.abc import Mapping

from mcpwrap.core.spec import Template

PATH = "/usr/local/bin:/usr/bin:/bin"


def build(
    *,
    account: str,
    home: str,
    tmp: str,
    inherited: Mapping[str, str],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """Return the whole environment. What the configuration declares wins over all else."""
    always = {
        "PATH": PATH,
        "HOME": home,
        "USER": account,
        "LOGNAME": account,
        "TMPDIR": tmp,
        "LANG": "C.UTF-8",
    }
    return {**always, **inherited, **declared}


def filled_in(template: Template, text_by_key: Mapping[str, str]) -> str:
    """Return the value with each secret, or the path of its file, in its place.

    In one pass: what a secret contains is never looked at again.
    """
    return "".join(part if isinstance(part, str) else text_by_key[part.secret] for part in template)
