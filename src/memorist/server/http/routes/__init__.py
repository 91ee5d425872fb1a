"""The routes of the API; each module adds its own to `routing.router`."""
