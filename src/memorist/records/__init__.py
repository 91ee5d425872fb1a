"""What we keep: frozen values without input or output."""
