"""Default policy as it is shipped: in force for each server, unless a file disables it."""
