"""What each command commits and returns."""
