"""PURE: execution of code for an agent: output limits, results, requirements of scripts."""
