"""Files in which agents list their servers, on this machine, and records of what was wrapped."""
