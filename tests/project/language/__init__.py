"""Rules for the language of the tree: banned phrases, and facts that a change of words loses."""
