"""Here-document of a shell command line: the lines of text after it, up to its end."""

from dataclasses import dataclass

from mcpwrap.core.policy.shell.syntax import Command
from mcpwrap.core.policy.shell.word_reader import Source


@dataclass(frozen=True, slots=True)
class HereDocument:
    """Here-document whose operator was read, and whose text begins on the next line."""

    command: Command
    end: str
    has_expansions: bool
    has_tabs: bool  # before each line, which are removed

    def read(self, source: Source) -> str:
        """Take the text and its end; without an end, all of the source, as shells do."""
        lines = []
        while source.at < len(source.text):
            end = source.text.find("\n", source.at)
            end = len(source.text) if end < 0 else end
            line = source.text[source.at : end].rstrip("\r")
            source.at = min(end + 1, len(source.text))
            if self.has_tabs:
                line = line.lstrip("\t")
            if line == self.end:
                break
            lines.append(line)
        return "".join(f"{line}\n" for line in lines)
