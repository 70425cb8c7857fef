"""RUNS AS THE CALLER: definitions of a server: which were accepted, and which are held back."""
