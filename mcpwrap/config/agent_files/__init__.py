"""PURE: parser of the files in which agents list their servers, and editor of single entries."""
