"""In and out: what other programs exported, brought in; archives of a whole memory."""
