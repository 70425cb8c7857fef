"""RUNS AS THE CALLER: setup: check, plan, apply, accept, secret, login."""
