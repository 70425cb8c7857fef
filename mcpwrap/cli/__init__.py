"""RUNS AS THE CALLER: commands of `mcpwrap`. Only root's programs change root's files."""
