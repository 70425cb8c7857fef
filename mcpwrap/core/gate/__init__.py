"""PURE: the gate as a state machine: a session's messages in, decisions and actions out."""
