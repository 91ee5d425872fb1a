"""The store: one class and one SQL logic over SQLite and PostgreSQL."""
