"""What fits: tokens, sections, budgets, and the window they fill."""
