"""RUNS AS THE AGENT: programs that an agent starts. They hold nothing that needs protecting."""
