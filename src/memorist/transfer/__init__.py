"""Import: what other programs exported, brought into a memory."""
