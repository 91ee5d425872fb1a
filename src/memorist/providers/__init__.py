"""Who thinks and who fetches: models, and files and URLs from outside."""
