"""The store for many machines: PostgreSQL."""
