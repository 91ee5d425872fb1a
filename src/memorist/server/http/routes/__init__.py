"""The router of the API with all of its routes, which these modules add to it."""

from importlib import import_module

from memorist.server.http.routing import router as router

for _name in "chat context documents entries maintenance memories messages system".split():
    import_module(f"{__name__}.{_name}")
