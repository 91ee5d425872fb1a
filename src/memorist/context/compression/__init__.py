"""Compression: older turns become a summary, of their own words or by a model."""
