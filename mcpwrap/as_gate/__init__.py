"""RUNS AS mcpwrap-gate: the gate: admits sessions, judges their messages, writes the audit."""
