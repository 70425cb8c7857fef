"""RUNS AS mcpj-POOL-N: supervisor of one run slot, and the code of one run."""
