"""The environment of a server: built from nothing, so that nothing leaks in."""

from collections.abc import Mapping

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
