"""The context builder: tokens, windows, turns and quotations, and what fills a window."""
