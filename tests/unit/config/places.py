"""Position of a test's line in a configuration."""

from dataclasses import dataclass

from mcpwrap.config.parse import SourceFile


@dataclass(frozen=True, slots=True)
class Place:
    """A table, and the lines that make its server whole without the line under test."""

    table: str  # as problems name it
    start: str

    def table_of(self, name: str) -> str:
        return self.table.replace("NAME", name)

    def with_line(self, line: str, name: str = "a") -> str:
        return f"{self.start.replace('NAME', name)}\n{line}\n"


_SERVER = "[mcp_servers.NAME]"
_WHOLE = f"{_SERVER}\ncommand = '/x'"
BARE = Place(_SERVER, _SERVER)
LOCAL = Place(_SERVER, _WHOLE)
REMOTE = Place(_SERVER, f"{_SERVER}\nurl = 'https://x.example/'")
_URL = f"{_SERVER}\nurl = 'https://x.example/'"
HEADERS = Place("[mcp_servers.NAME.headers]", f"{_URL}\n[mcp_servers.NAME.headers]")
REMOTE_OURS = Place("[mcp_servers.NAME.mcpwrap]", f"{_URL}\n[mcp_servers.NAME.mcpwrap]")
ENV = Place("[mcp_servers.NAME.env]", f"{_WHOLE}\n[mcp_servers.NAME.env]")
OURS = Place("[mcp_servers.NAME.mcpwrap]", f"{_WHOLE}\n[mcp_servers.NAME.mcpwrap]")
LIMITS = Place("[mcp_servers.NAME.mcpwrap.limits]", f"{_WHOLE}\n[mcp_servers.NAME.mcpwrap.limits]")


def source(text: str | bytes, name: str = "f.toml") -> SourceFile:
    return SourceFile(name, text if isinstance(text, bytes) else text.encode())


# Each makes some program run, load or reach what its value names.
STEERING = (
    "NIX_LD", "GTK_MODULES", "QT_PLUGIN_PATH", "CORECLR_PROFILER", "JULIA_LOAD_PATH",
    "RUSTC_WRAPPER", "GOFLAGS", "LESSOPEN", "PAGER", "EDITOR", "SVN_SSH", "RSYNC_RSH",
    "XDG_CONFIG_HOME", "KUBECONFIG", "AWS_CONFIG_FILE",
)  # fmt: skip
