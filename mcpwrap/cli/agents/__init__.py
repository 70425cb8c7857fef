"""RUNS AS WHOEVER TYPED IT: commands about agents' files: clients, convert, wrap, unwrap."""
