"""Documents: files become text, text becomes passages, and passages what fits a window."""
