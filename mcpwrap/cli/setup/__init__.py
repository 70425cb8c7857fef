"""RUNS AS WHOEVER TYPED IT: setup: check, plan, apply, accept, secret, login."""
