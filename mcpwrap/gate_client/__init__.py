"""Clients of the gate's sockets: approvals, logins, queries."""
