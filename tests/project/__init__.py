"""Order of the project itself: the map of its rooms, the rules for its names, language and pages."""
