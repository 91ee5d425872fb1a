"""A server that does nothing, with the settings of ours: `python -m benchmarks.server_empty`."""

from __future__ import annotations

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memorist.server.http.run import uvicorn_config


async def nothing(_: Request) -> Response:
    return Response()


def main() -> None:
    """Say where, and serve until stopped."""
    app = Starlette(routes=[Route("/health", nothing)])
    config = uvicorn_config(app)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print("page", f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
