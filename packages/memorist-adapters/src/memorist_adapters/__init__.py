"""Memorist for other agent frameworks; import the module named after yours."""
