"""Documents: reading files, splitting their text into chunks, and excerpts that fit a window."""
