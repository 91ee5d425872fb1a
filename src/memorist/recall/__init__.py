"""Recall: the channels that find passages, and the search that runs and ranks them."""
