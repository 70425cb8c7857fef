"""`mcpwrap tools`: commands for the definitions of a server that were accepted or are held back."""

import click

from mcpwrap.cli.tools import decide, diff, list_definitions, reset, show


@click.group("tools")
def command() -> None:
    """Show and decide what servers say of their tools.

    What a server says of its tools, prompts, resource templates and of itself is remembered when it
    is accepted. What is new or changed since is held back: agents do not see it, and the gate
    refuses to call it, until a person accepts it. TOOL is the name of a tool, `prompt:NAME`,
    `template:URI`, `instructions`, or `sha256:` with the first digits of a digest.

    \b
    Example:  mcpwrap tools diff github
    """


for one in (
    list_definitions.command,
    show.command,
    diff.command,
    decide.accept,
    decide.reject,
    reset.command,
):
    command.add_command(one)
