"""RUNS AS THE AGENT: what an agent starts. It holds nothing that needs protecting."""
