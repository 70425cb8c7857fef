"""From the tree to packages."""
