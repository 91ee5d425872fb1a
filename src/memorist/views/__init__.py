"""The objects agent authors hold."""
