"""Denylist of home paths (keys, logins, writable startup files) that root alone may give away."""

from collections.abc import Iterable

# Keys and logins.
_SECRET = (
    *(".ssh", ".gnupg", ".pki", ".password-store", ".netrc", ".git-credentials", ".pgpass"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".local/state/mcpwrap"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".config/1Password", ".config/Bitwarden"),
)
# What is run as them, the next time that they log in, open a shell, or start an agent.
_STARTS = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".config/fish", ".config/zsh", ".inputrc"),
    *(".xsession", ".xsessionrc", ".xprofile", ".xinitrc", ".pam_environment"),
    *(".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/systemd"),
    *(".local/share/applications", ".local/bin", "bin", ".gitconfig", ".config/git", ".vimrc"),
    *(".vim", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".npmrc", ".envrc"),
    *(".config/direnv", ".claude", ".claude.json", ".codex", ".copilot", ".cursor", ".gemini"),
    *(".qwen", ".kiro", ".continue", ".codeium", ".cline", ".config/Claude", ".config/Code"),
    *(".config/devin", ".config/zed", ".config/opencode", ".config/goose", ".config/amp"),
    *(".vscode", ".config/mcpwrap", ".aws", ".docker", ".kube"),
)


def why_not(path: str, home: str, *, is_writable: bool) -> str:
    """Return why this is not to be given; "" is that it can be."""
    if _meets(path, home, _SECRET):
        return "its person's keys or logins are there"
    if is_writable and _meets(path, home, _STARTS):
        return "what is written there is run as its person"
    return ""


def _meets(path: str, home: str, names: Iterable[str]) -> bool:
    """Say whether a path is one of these in a home, or is in one, or has one in it."""
    return any(
        f"{path}/".startswith(f"{home}/{name}/") or f"{home}/{name}".startswith(f"{path}/")
        for name in names
    )
