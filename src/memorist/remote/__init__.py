"""A memory on a server, used like one at hand."""
