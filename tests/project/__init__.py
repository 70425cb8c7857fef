"""Order of the project itself: the map of its rooms; rules for names, language and pages."""
