"""What deserves keeping, and for how long."""
