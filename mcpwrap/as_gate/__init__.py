"""RUNS AS mcpwrap-gate: the gate admits sessions, judges their messages and writes the audit."""
