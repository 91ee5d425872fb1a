"""The formats that are imported, each a module, in the order in which they are tried."""

from memorist.transfer.items import Format

FORMATS: tuple[Format, ...] = ()
