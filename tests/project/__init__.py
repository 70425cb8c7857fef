"""Order of the project itself: the map of its rooms, and the rules for its names."""
