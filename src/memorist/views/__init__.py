"""Views of a memory for agent authors: conversations, facts, notes, articles, tiers."""
