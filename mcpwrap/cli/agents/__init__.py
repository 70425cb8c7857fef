"""RUNS AS THE CALLER: commands about agents' files: clients, convert, wrap, unwrap."""
