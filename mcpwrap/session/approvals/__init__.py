"""Files of approvals: saved rules, and clients that draw forms; for the gate and `mcpwrap run`."""
