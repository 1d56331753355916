"""Serves the stand-in on a free port of 127.0.0.1, prints that port, and ends when its standard input does.

So it never outlives the process that started it, however that one ends. Everything is kept in memory.
"""

import asyncio
import os
import socket
import sys
import threading

listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
port = listening.getsockname()[1]

# Read when the modules are imported.
os.environ.update(
    # It looks at the signatures of URLs, and at no others.
    AWS_ACCESS_KEY_ID="stand-in",
    AWS_SECRET_ACCESS_KEY="stand-in",
    GATEWAY_PORT=str(port),
    IOT_MTLS_ENABLED="0",
    LOG_LEVEL="ERROR",
    MINISTACK_HOST="localhost",
    PERSIST_STATE="0",
    S3_PERSIST="0",
    # The last ones for stacks of the template of functions.
    SERVICES="cloudformation,dynamodb,kms,s3,apigateway,cloudwatch,events,iam,lambda,logs",
)

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app


def end_with_the_caller():
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


threading.Thread(target=end_with_the_caller, daemon=True).start()

config = Config()
config.bind = [f"fd://{listening.fileno()}"]
config.keep_alive_timeout = 75
config.loglevel = "ERROR"

# Connections wait until it serves.
print(port, flush=True)
asyncio.run(serve(app, config))
