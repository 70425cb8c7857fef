"""This machine in the plan's terms: observed state, planning, packet rules, sessions."""
