"""Pages made from the tree: the manual of errors, the site; and rules for the how-to pages."""
