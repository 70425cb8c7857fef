"""Stories of mcpwrap beside other programs with packet rules, and of its maintainer scripts."""
