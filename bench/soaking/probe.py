"""Who serves: asks coordinators for their health and their metrics, and prints what it hears, a line of JSON each.

    probe.py FOLDER_OF_CERTIFICATES NAME=ADDRESS..

It runs on the client's host, so that it sees what clients see. Times are of the machine's monotonic clock, when the
question was asked.
"""

import json
import sys
import threading
import time
import urllib.request
from pathlib import Path

import grpc

EVERY = 0.25
PATIENCE = 1.0
HEALTH = {b"\x08\x01": "serving", b"\x08\x02": "standing by"}  # HealthCheckResponse
# A connection is made for every question: an old one would have to find out first that its network is back.
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]


def health(address: str, credentials: grpc.ChannelCredentials) -> str:
    with grpc.secure_channel(f"{address}:7070", credentials, OPTIONS) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            return HEALTH.get(check(b"", timeout=PATIENCE), "strange")
        except grpc.RpcError:
            return "silent"


def metrics(address: str) -> dict[str, int]:
    try:
        with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=PATIENCE) as page:
            lines = page.read().decode().splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: int(value) for name, value in pairs}


def watch(name: str, address: str, credentials: grpc.ChannelCredentials) -> None:
    for turn in range(1 << 62):
        asked = time.monotonic()
        said = {"at": asked, "name": name, "health": health(address, credentials)}
        if turn % 4 == 0 and said["health"] == "serving":
            said["metrics"] = metrics(address)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        time.sleep(max(0.0, asked + EVERY - time.monotonic()))


def main() -> None:
    folder = Path(sys.argv[1])
    read = [(folder / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem")]
    credentials = grpc.ssl_channel_credentials(*read)
    for pair in sys.argv[2:]:
        threading.Thread(target=watch, args=(*pair.split("="), credentials), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
