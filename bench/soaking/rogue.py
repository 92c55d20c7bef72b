"""A worker that does what a real one never would: a real one behind a proxy that doubles, reorders and forges what it says.

    rogue.py FOLDER_OF_CERTIFICATES PORT SEED ADDRESS..

Listens on loopback for one worker and calls the coordinators for it. The records that it hands in are right, because
a real worker computed them; how it hands them in is not. Prints what it did when it is told to stop.
"""

import json
import queue
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

PATIENCE = 10.0  # seconds for a call that is passed on
SHARE = 0.3  # of leases that are misused
NEIGHBOURS = 500  # leases of others that a heartbeat names, on either side
STREAMS = 8  # that stay open beside a worker's own
SERVICE = "/regretta.v1.Workers/"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

WAYS = (
    "a part twice", "all of it on two streams", "the end on another stream", "the end twice", "the end first",
    "given back after the end", "given back before the end", "reconnected after the end", "a part left out",
    "the end on a stream of nobody",
)


class Messages:
    """Classes of messages, as the coordinator describes them."""

    def __init__(self, channel: grpc.Channel):
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        for name in ("RegisterRequest", "RegisterReply", "HeartbeatRequest", "RecordStream"):
            setattr(self, name, message_factory.GetMessageClass(pool.FindMessageTypeByName(f"regretta.v1.{name}")))


class Outgoing:
    """A stream to the coordinator, fed message by message."""

    def __init__(self, channel: grpc.Channel):
        self.queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.replies = channel.stream_stream(SERVICE + "Stream")(iter(self.queue.get, None))

    def send(self, message) -> None:
        self.queue.put(message.SerializeToString())

    def ignore_replies(self) -> None:
        def drain() -> None:
            try:
                for _ in self.replies:
                    pass
            except grpc.RpcError:
                pass

        threading.Thread(target=drain, daemon=True).start()

    def close(self) -> None:
        self.queue.put(None)


class Rogue(grpc.GenericRpcHandler):
    """Passes calls of a worker on, some of them not as they were made."""

    def __init__(self, channels: list[grpc.Channel], seed: int):
        self.channels, self.random = channels, random.Random(seed)
        self.channel = channels[0]  # that of the coordinator that serves
        self.messages: Messages | None = None
        self.registration = b""
        self.done: Counter[str] = Counter()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        name = details.method.removeprefix(SERVICE)
        if name == "Stream":
            return grpc.stream_stream_rpc_method_handler(self.stream)
        if name == "FetchFile":
            return grpc.unary_stream_rpc_method_handler(lambda request, context: self.pass_stream(name, request, context))
        change = {"Register": self.register, "Heartbeat": self.heartbeat}.get(name)
        if change:
            return grpc.unary_unary_rpc_method_handler(change)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.pass_on(name, request, context))

    def pass_on(self, name: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return self.channel.unary_unary(SERVICE + name)(request, timeout=PATIENCE)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def pass_stream(self, name: str, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            yield from self.channel.unary_stream(SERVICE + name)(request, timeout=6 * PATIENCE)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def register(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """At the coordinator that serves."""
        last = None
        for channel in self.channels:
            try:
                reply = channel.unary_unary(SERVICE + "Register")(request, timeout=PATIENCE / 2)
                self.messages = self.messages or Messages(channel)
                self.channel, self.registration = channel, request
                return reply
            except grpc.RpcError as error:
                last = error
        context.abort(last.code(), last.details())

    def heartbeat(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """With leases of others around those of the worker."""
        beat = self.messages.HeartbeatRequest.FromString(request)
        own = {progress.lease for progress in beat.leases}
        if own and self.random.random() < SHARE:
            self.done["heartbeats that name leases of others"] += 1
            for lease in range(max(0, min(own) - NEIGHBOURS), max(own) + NEIGHBOURS):
                if lease not in own:
                    beat.leases.add(lease=lease)
        return self.pass_on("Heartbeat", beat.SerializeToString(), context)

    def stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.send_initial_metadata(())  # the worker waits for it before it asks for a lease
        first = Outgoing(self.channel)
        feeder = Feeder(self, first)
        threading.Thread(target=feeder.run, args=(requests,), daemon=True).start()
        try:
            yield from first.replies
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
        finally:
            first.close()


class Feeder:
    """Misuses some leases of a stream."""

    def __init__(self, rogue: Rogue, first: Outgoing):
        self.rogue, self.first = rogue, first
        self.others: list[Outgoing] = []
        self.open = None
        self.ways: dict[int, str] = {}  # what is done with a lease
        self.left_out: set[int] = set()

    def run(self, requests: Iterator[bytes]) -> None:
        try:
            for request in requests:
                self.hand_in(self.rogue.messages.RecordStream.FromString(request))
        except grpc.RpcError:
            pass  # the worker is gone
        finally:
            for stream in (self.first, *self.others):
                stream.close()

    def way(self, lease: int) -> str:
        if lease not in self.ways:
            misused = self.rogue.random.random() < SHARE
            self.ways[lease] = self.rogue.random.choice(WAYS) if misused else ""
            self.rogue.done[self.ways[lease] or "leases handed in as they should be"] += 1
        return self.ways[lease]

    def another(self, worker: int = 0) -> Outgoing:
        """A stream beside the first one, of the same worker if no other is named."""
        stream = Outgoing(self.rogue.channel)
        stream.ignore_replies()
        message = self.rogue.messages.RecordStream()
        message.open.worker_id = worker or self.open.open.worker_id
        stream.send(message)
        self.others.append(stream)
        if len(self.others) > STREAMS:
            self.others.pop(0).close()
        return stream

    def given_back(self, lease: int):
        message = self.rogue.messages.RecordStream()
        message.abandon.lease, message.abandon.reason = lease, "so be it"
        return message

    def hand_in(self, message) -> None:
        kind = message.WhichOneof("message")
        if kind == "open":
            self.open = message
        if kind not in ("part", "finish"):
            return self.first.send(message)
        lease = getattr(message, kind).lease
        way = self.way(lease)
        if kind == "part":
            self.part(lease, way, message)
        else:
            self.finish(lease, way, message)
            del self.ways[lease]

    def part(self, lease: int, way: str, message) -> None:
        if way == "a part left out" and lease not in self.left_out:
            self.left_out.add(lease)
            return
        if way == "the end first":
            early = self.rogue.messages.RecordStream()
            early.finish.lease, early.finish.digest = lease, bytes(32)
            self.first.send(early)
        self.first.send(message)
        if way == "a part twice":
            self.first.send(message)
        if way == "all of it on two streams":
            self.another().send(message)

    def finish(self, lease: int, way: str, message) -> None:
        if way == "given back before the end":
            self.first.send(self.given_back(lease))
        if way in ("the end on another stream", "all of it on two streams"):
            self.another().send(message)
        if way == "the end on a stream of nobody":
            self.another(self.open.open.worker_id ^ 1).send(message)
        self.first.send(message)
        if way == "the end twice":
            self.first.send(message)
        if way == "given back after the end":
            self.first.send(self.given_back(lease))
        if way == "reconnected after the end":
            request = self.rogue.messages.RegisterRequest.FromString(self.rogue.registration)
            request.previous_worker_id = self.open.open.worker_id
            try:
                self.rogue.channel.unary_unary(SERVICE + "Register")(request.SerializeToString(), timeout=PATIENCE)
            except grpc.RpcError:
                pass


def main() -> None:
    certificates, port, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    read = [(certificates / name).read_bytes() for name in ("ca.pem", "client.key", "client.pem")]
    credentials = grpc.ssl_channel_credentials(*read)
    # Networks are cut: the next attempt must not wait for minutes.
    options = [*UNLIMITED, ("grpc.max_reconnect_backoff_ms", 1000), ("grpc.keepalive_time_ms", 5000)]
    channels = [grpc.secure_channel(address, credentials, options) for address in sys.argv[4:]]
    rogue = Rogue(channels, seed)
    server = grpc.server(ThreadPoolExecutor(64), [rogue], options=UNLIMITED)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    stop.wait()
    print("misuse " + json.dumps(rogue.done), flush=True)
    server.stop(0.2).wait()


if __name__ == "__main__":
    main()
