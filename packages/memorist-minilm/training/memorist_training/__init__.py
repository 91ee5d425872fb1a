"""Trains the adapter that turns all-MiniLM-L6-v2 into Memorist's embedder."""
