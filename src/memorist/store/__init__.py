"""Where it lives: one contract, one logic, two databases."""
