"""Memorist: the memory of AI agents."""

from importlib import import_module
from pkgutil import get_data

__version__ = "0.1.0"


def _modules() -> dict[str, str]:
    """The public names and the modules that define them, as `__init__.pyi` lists them."""
    stub = (get_data(__name__, "__init__.pyi") or b"").decode()
    imports = [line.split() for line in stub.splitlines() if line.startswith("from memorist.")]
    return {name: module for _, module, _, name, *_ in imports}


_MODULES = _modules()
__all__ = sorted([*_MODULES, "__version__"])


def __getattr__(name: str) -> object:
    """A public name, whose module is imported now: `memorist --help` needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module 'memorist' has no attribute {name!r}")
    value: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
