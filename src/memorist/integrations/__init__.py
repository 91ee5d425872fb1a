"""Doors that a host framework opens; each needs the extra of its name."""
