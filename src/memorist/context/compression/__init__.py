"""Compression: older turns become a summary, extracted from their words or made by a model."""
