"""RUNS AS mcpwrap-gate: the gate, which admits sessions and judges their messages by the policy."""
