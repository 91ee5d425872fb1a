"""Views of a memory for agent authors: conversations, facts, tiers."""
