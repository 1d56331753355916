"""Serves LocalStack on a free port of 127.0.0.1, prints that port, and ends when its standard input does.

Its DynamoDB is the server that the first argument names. Everything is kept in memory.
"""

import os
import runpy
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.request

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]

folder = tempfile.mkdtemp(prefix="localstack-")
# Read when the modules are imported.
os.environ.update(
    DISABLE_EVENTS="1",
    DNS_ADDRESS="0",
    DYNAMODB_URL=sys.argv[1],
    FILESYSTEM_ROOT=folder,
    GATEWAY_LISTEN=f"127.0.0.1:{port}",
    LOCALSTACK_HOST=f"localhost:{port}",
    LS_LOG="error",
    PROVIDER_OVERRIDE_DYNAMODB="elsewhere",
    S3_SKIP_SIGNATURE_VALIDATION="0",
    SERVICES="dynamodb,kms,s3",
    SKIP_SSL_CERT_DOWNLOAD="1",
    TMPDIR=folder,
)
# What it prints itself would be taken for the port.
told = os.dup(1)
os.dup2(2, 1)


def end_with_the_caller():
    while os.read(sys.stdin.fileno(), 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def tell_when_it_serves():
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_localstack/health", timeout=5).read()
            break
        except OSError:
            time.sleep(0.1)
    os.write(told, f"{port}\n".encode())


threading.Thread(target=end_with_the_caller, daemon=True).start()
threading.Thread(target=tell_when_it_serves, daemon=True).start()
sys.argv = ["localstack"]
runpy.run_module("localstack.runtime.main", run_name="__main__")
