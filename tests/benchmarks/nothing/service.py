"""A Starlette service that reads JSON and answers with JSON, and checks nothing. Prints its port."""

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

ANSWER = {"server_id": 20001, "action": "start", "status": "accepted", "message": "The server is starting."}


async def answer(request: Request) -> JSONResponse:
    await request.json()
    return JSONResponse(ANSWER, 202)


def main() -> None:
    paths = ("/v1/servers", "/v1/servers/{server_id:int}/actions/power")
    application = Starlette(routes=[Route(path, answer, methods=["POST"]) for path in paths])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(application, http="httptools", ws="none", log_config=None, access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
