"""How it is found: channels, one file each, and the search that runs them."""
