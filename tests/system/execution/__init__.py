"""Stories of code execution: Python servers, the worker, run slots."""
