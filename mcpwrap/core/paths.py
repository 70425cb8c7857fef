"""Whether a path that an agent wrote is in a folder, by its text alone."""

from mcpwrap.core.truth import UNJUDGEABLE, Truth, holds

_TRIMMED_BY_SOME = (" ", '"', "'")


def inside(untrusted_path: str, folder: str) -> Truth:
    r"""Say whether the path is in `folder`, which is absolute and in its shortest form.

    Links are not looked at: what a server can reach is for the kernel to say. Not judged is what
    programs understand in different ways: a relative path, `~` and `file://` among them; `..`,
    which after a link leads elsewhere than its text; `\`, which some take for `/`; control and
    other characters that are not seen; and quotes or spaces at the end, which some take off.
    """
    if (
        not untrusted_path.startswith("/")
        or not untrusted_path.isprintable()
        or "\\" in untrusted_path
        or untrusted_path.endswith(_TRIMMED_BY_SOME)
    ):
        return UNJUDGEABLE
    path = f"{untrusted_path}/"
    if "//" in path or "/." in path:
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if ".." in parts:
            return UNJUDGEABLE
        path = "/".join(["", *parts, ""])
    return holds(path.startswith(f"{folder.rstrip('/')}/"))
