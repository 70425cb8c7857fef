"""`mcpwrap schema policy | config`: print the JSON Schema of a kind of file. Reads nothing."""

import click

from mcpwrap.cli.common.output import print_json
from mcpwrap.config.json_schema import SCHEMAS
from mcpwrap.errors import EXIT_OK


@click.command("schema")
@click.argument("kind", type=click.Choice(sorted(SCHEMAS)))
def command(kind: str) -> int:
    """Print the JSON Schema of policy files, or of config.toml.

    Editors check a file by it, and complete its keys. The package has both as
    /usr/share/mcpwrap/schema/KIND.json.

    \b
    Example:  mcpwrap schema policy > policy.schema.json
    In the file's first line, for yaml-language-server and for taplo:
        # yaml-language-server: $schema=/usr/share/mcpwrap/schema/policy.json
        #:schema /usr/share/mcpwrap/schema/config.json
    """
    print_json(SCHEMAS[kind]())
    return EXIT_OK
