"""A client in another language, without generated code: everything it knows comes from reflection.

    python_client.py path/to/regretta

needs grpcio, grpcio-reflection and grpcio-health-checking. Starts a coordinator, lists its services,
asks for its health, submits a study, and watches it while a worker computes it.
"""

import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

TOKEN = "a-token-for-the-python-client"
METADATA = [("authorization", f"Bearer {TOKEN}")]
TIMEOUT = 60
STUDY = """
[study]
name = "python"
seed = 7
replicates = 200

[prior]
domain = { kind = "grid", points = 20, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.01

[grid]
N = [60]
T = [1, 5]
delta = [0.1]
"""


class Authorized(grpc.UnaryUnaryClientInterceptor, grpc.StreamStreamClientInterceptor,
                 grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor):
    """Puts the token on every call, those of reflection too."""

    def _call(self, go_on, details, request):
        return go_on(details._replace(metadata=METADATA), request)

    intercept_unary_unary = intercept_stream_stream = _call
    intercept_unary_stream = intercept_stream_unary = _call


class Stub:
    """The methods of a service, made from its descriptor."""

    def __init__(self, channel, service):
        for method in service.methods:
            kinds = ("stream" if method.client_streaming else "unary", "stream" if method.server_streaming else "unary")
            make = getattr(channel, "_".join(kinds))
            setattr(self, method.name, make(
                f"/{service.full_name}/{method.name}",
                request_serializer=message_factory.GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
            ))


def start(binary, folder):
    """A coordinator on a port that the system picks; the process and its address."""
    token = Path(folder, "token")
    token.write_text(TOKEN)
    process = subprocess.Popen(
        [binary, "coordinator", "--dir", f"{folder}/service", "--listen", "127.0.0.1:0", "--token-file", token],
        stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if found := re.search(r"coordinator at http://(\S+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found[1]
    sys.exit("the coordinator did not start")


def check(binary, folder, address, processes):
    plain = grpc.insecure_channel(address)
    answer = health_pb2_grpc.HealthStub(plain).Check(
        health_pb2.HealthCheckRequest(service="regretta.v1.Studies"), timeout=TIMEOUT)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING, answer

    channel = grpc.intercept_channel(plain, Authorized())
    database = ProtoReflectionDescriptorDatabase(channel)
    services = sorted(database.get_services())
    print("services:", ", ".join(services))
    assert {"grpc.health.v1.Health", "regretta.v1.Studies", "regretta.v1.Workers"} <= set(services), services

    pool = descriptor_pool.DescriptorPool(database)
    message = lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"regretta.v1.{name}"))
    states = pool.FindEnumTypeByName("regretta.v1.StudyState").values_by_number
    service = pool.FindServiceByName("regretta.v1.Studies")
    try:
        Stub(plain, service).List(message("ListRequest")(), timeout=TIMEOUT)
        sys.exit("the coordinator let a caller in that has no token")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED, error

    studies = Stub(channel, service)
    bad = message("SubmitRequest")(study={"file_name": "bad.toml", "text": STUDY.replace("seed", "sead")})
    try:
        studies.Submit(iter([bad]), timeout=TIMEOUT)
        sys.exit("a study with an unknown key was taken")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "sead" in error.details(), error
    submitted = message("SubmitRequest")(study={"file_name": "python.toml", "text": STUDY})
    study = studies.Submit(iter([submitted]), timeout=TIMEOUT).study
    listed = studies.List(message("ListRequest")(), timeout=TIMEOUT).studies
    assert [(one.study, one.name, one.trials_done) for one in listed] == [(study, "python", 0)], listed

    processes.append(subprocess.Popen(
        [binary, "worker", "--coordinator", f"http://{address}", "--token-file", f"{folder}/token", "--name", "snake"],
        stderr=subprocess.DEVNULL))
    for status in studies.Watch(message("WatchRequest")(study=study), timeout=TIMEOUT):
        done = sum(cell.trials_done for cell in status.cells)
        print(states[status.state].name, done, "of", sum(cell.trials_planned for cell in status.cells))
    assert states[status.state].name == "STUDY_STATE_DONE", status
    assert done == sum(cell.trials_planned for cell in status.cells), status
    files = {chunk.name for chunk in studies.FetchResults(message("FetchResultsRequest")(study=study), timeout=TIMEOUT)}
    assert {"manifest.json", "study.toml"} <= files, files
    print(len(files), "files")


def main():
    binary = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        coordinator, address = start(binary, folder)
        processes = [coordinator]
        try:
            check(binary, folder, address, processes)
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait(timeout=TIMEOUT)
        assert all(process.returncode == 0 for process in processes), [p.returncode for p in processes]


if __name__ == "__main__":
    main()
