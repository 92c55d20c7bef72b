"""Who is let in, across hosts: certificates and tokens that are right, wrong, expired, missing, or of somebody else.

Whoever is refused hears why, soon, and gets nothing; no coordinator keeps anything of it; and on the wire nothing can be
read.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from authority import Authority
from fleet import PORT, Fleet
from network import Host

TOKEN, WRONG = "correct-horse-battery-staple-4242", "wrong-horse-battery-staple-4242"
SOON = 20  # seconds; nothing here takes more than two on an idle machine
SECRET = "what-nobody-else-should-read"
STUDY = f"""\
[study]
name = "{SECRET}"
seed = 7
replicates = 20
[prior]
domain = {{ kind = "grid", points = 20, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.2 }}
noise_variance = 0.01
[grid]
N = [60]
T = [5]
delta = 0.1
"""

# Calls everything that the service files have, and reflection, with what is given and no more.
PROBE = """
import re, sys, grpc
target, authority, key, chain, token, *files = sys.argv[1:]
read = lambda path: open(path, "rb").read() if path else None
credentials = grpc.ssl_channel_credentials(read(authority), read(key), read(chain))
metadata = [("authorization", "Bearer " + token)] if token else []
calls = [f"regretta.v1.{service}/{method}" for file in files for service, body in re.findall(r"service (\\w+) {(.*?)\\n}", open(file).read(), re.S) for method in re.findall(r"rpc (\\w+)", body)]
calls += [f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")]
with grpc.secure_channel(target, credentials) as channel:
    for call in calls:
        try:
            answers = list(channel.stream_stream("/" + call)(iter([b""]), metadata=metadata, timeout=10))
            print(call, "ANSWERED", len(answers))
        except grpc.RpcError as error:
            print(call, error.code().name)
"""


# Accepts connections and says nothing.
SILENT = "import socket, sys, time; l = socket.create_server((sys.argv[1], int(sys.argv[2]))); print(1, flush=True); time.sleep(300)"

# Begins a TLS handshake and stops.
HALF = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=25) as stream:
    stream.sendall(b"\\x16\\x03\\x01")
    print("closed" if not stream.recv(100) else "answered")
"""


@dataclass
class Case:
    """A caller, what it shows, and what it must hear: a command of a user and a worker."""

    who: str
    words: tuple[str, ...]
    hears: str
    worker_hears: str = ""


def check(fleet: Fleet, say: Callable[[str], None]) -> None:
    place = fleet.network.add("guarded")
    caller = fleet.network.add("caller")
    folder = fleet.folder / "access"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    (folder / "token").write_text(TOKEN)
    (folder / "wrong").write_text(WRONG)
    for out in ("certs", "others"):
        made = fleet.call(place, "cert", "--out", str(folder / out), "--host", place.address, "--host", "coordinator.test")
        assert made.returncode == 0, made.stderr
    authority = Authority(folder / "authority")
    coordinators(fleet, folder, place, authority)
    refusals = refused_cases(folder, place, authority)
    mute = place.spawn([sys.executable, "-c", SILENT, place.address, str(MUTE)], stdout=subprocess.PIPE)
    mute.stdout.readline()
    with ThreadPoolExecutor(6) as pool:
        waits = [pool.submit(half_way, caller, place), pool.submit(unanswered, fleet, folder, caller, place)]
        for case, seconds in pool.map(lambda case: (case, refused(fleet, folder, caller, case)), refusals):
            say(f"refused in {seconds:.1f} s: {case.who}")
        for wait in waits:
            say(wait.result())
    mute.kill()
    mute.wait()
    nothing_is_answered(fleet, folder, caller, place, say)
    admitted(fleet, folder, caller, place, say)
    wire(fleet, folder, caller, place, say)
    connected = caller.run([sys.executable, "-c", f"import socket; socket.create_connection(('{place.address}', 9090), timeout=5)"], capture_output=True)
    assert connected.returncode != 0, "metrics can be reached from other hosts"


# Ports of coordinators on the guarded host, by what they ask for.
CERTIFICATE, TOKENS, PLAIN, ELSEWHERE, EXPIRED, OWN, MUTE = range(PORT, PORT + 7)


def coordinators(fleet: Fleet, folder: Path, place: Host, authority: Authority) -> None:
    def serve(name: str, port: int, pair: tuple[str, str] | None, *words: str) -> None:
        tls = ("--tls-cert", pair[0], "--tls-key", pair[1]) if pair else ()
        fleet.coordinator(place, name, *tls, *words, port=port)

    made = (str(folder / "certs/server.pem"), str(folder / "certs/server.key"))
    token = ("--token-file", str(folder / "token"))
    serve("by-certificate", CERTIFICATE, made, "--tls-ca", str(folder / "certs/ca.pem"), "--metrics", "127.0.0.1:9090")
    serve("by-token", TOKENS, made, *token)
    serve("plain", PLAIN, None, *token, "--insecure")
    serve("elsewhere", ELSEWHERE, authority.sign("elsewhere", "server", "10.77.0.250"), *token)
    serve("expired", EXPIRED, authority.sign("expired-server", "server", place.address, -30, -1), *token)
    serve("own", OWN, authority.sign("server", "server", place.address), "--tls-ca", str(authority.folder / "ca.pem"))


def identity(pair: tuple[str, str]) -> tuple[str, ...]:
    return ("--tls-cert", pair[0], "--tls-key", pair[1])


def refused_cases(folder: Path, place: Host, authority: Authority) -> list[Case]:
    def at(port: int, scheme: str = "https") -> tuple[str, ...]:
        return ("--coordinator", f"{scheme}://{place.address}:{port}")

    def files(out: str) -> tuple[str, str]:
        return (str(folder / out / "client.pem"), str(folder / out / "client.key"))

    trust = ("--tls-ca", str(folder / "certs/ca.pem"))
    trust_own = ("--tls-ca", str(authority.folder / "ca.pem"))
    token, wrong = ("--token-file", str(folder / "token")), ("--token-file", str(folder / "wrong"))
    here = place.address
    server_pair = (str(folder / "certs/server.pem"), str(folder / "certs/server.key"))
    return [
        Case("no certificate", (*at(CERTIFICATE), *trust), "valid token or client certificate"),
        Case("a token where certificates are asked for", (*at(CERTIFICATE), *trust, *token), "valid token or client certificate"),
        Case("a certificate of another authority", (*at(CERTIFICATE), *trust, *identity(files("others"))), "regretta cert"),
        Case("the server's certificate as a client's", (*at(CERTIFICATE), *trust, *identity(server_pair)), "ertificate"),
        Case("an expired certificate", (*at(OWN), *trust_own, *identity(authority.sign("old", "client", here, -30, -1))), "xpired"),
        Case("a certificate that is not valid yet", (*at(OWN), *trust_own, *identity(authority.sign("new", "client", here, 1, 30))), "ertificate"),
        Case("a coordinator of another authority", (*at(CERTIFICATE), "--tls-ca", str(folder / "others/ca.pem"), *identity(files("others"))), "ertificate"),
        Case("a coordinator with a certificate for another address", (*at(ELSEWHERE), *trust_own, *token), "not valid for name"),
        Case("a coordinator with an expired certificate", (*at(EXPIRED), *trust_own, *token), "xpired"),
        Case("a coordinator with a certificate for another name", (*at(CERTIFICATE), *trust, "--tls-name", "other.test", *identity(files("certs"))), "not valid for name"),
        Case("no authority", (*at(TOKENS), *token), "--tls-ca"),
        Case("no TLS where it is asked for", (*at(TOKENS, "http"), *token), "https"),
        Case("TLS where there is none", (*at(PLAIN), *trust, *token), "use http://", "http:// if not"),
        Case("no token", (*at(TOKENS), *trust), "valid token"),
        Case("a wrong token", (*at(TOKENS), *trust, *wrong), "valid token"),
        Case("a certificate where tokens are asked for", (*at(TOKENS), *trust, *identity(files("certs"))), "valid token"),
        Case("no token, not encrypted", at(PLAIN, "http"), "valid token"),
    ]


def refused(fleet: Fleet, folder: Path, caller: Host, case: Case) -> float:
    """Every command is refused: exit code 2, with the reason, and nothing on stdout. The longest took these seconds."""
    commands = {
        "list": ("study", "list"),
        "submit": ("study", "submit", str(folder / "study.toml")),
        "fetch": ("study", "fetch", SECRET, "--out", str(folder / "stolen")),
        "worker": ("worker", "--name", "stranger", "--slots", "1", "--patience", "2"),
    }
    longest = 0.0
    for name, words in commands.items():
        began = time.monotonic()
        try:
            done = fleet.call(caller, *words, *case.words, seconds=SOON)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{case.who}: {name} was not refused within {SOON} s") from None
        longest = max(longest, time.monotonic() - began)
        hears = (case.worker_hears if name == "worker" else "") or case.hears
        assert done.returncode == 2, f"{case.who}: {name} ended with {done.returncode}: {done.stderr}"
        assert hears in done.stderr, f"{case.who}: {name} does not hear {hears!r}: {done.stderr}"
        assert not done.stdout and TOKEN not in done.stderr, f"{case.who}: {name} got {done.stdout!r}, {done.stderr!r}"
    assert not (folder / "stolen").exists(), case.who
    return longest


def half_way(caller: Host, place: Host) -> str:
    done = caller.run([sys.executable, "-c", HALF, place.address, str(CERTIFICATE)], capture_output=True, text=True)
    assert done.stdout.strip() == "closed", f"a caller that stops half-way keeps its place: {done.stdout}{done.stderr}"
    return "a caller that stops half-way through the handshake is let go"


def unanswered(fleet: Fleet, folder: Path, caller: Host, place: Host) -> str:
    at = ("--coordinator", f"https://{place.address}:{MUTE}", "--tls-ca", str(folder / "certs/ca.pem"))
    done = fleet.call(caller, "study", "list", *at, seconds=40)
    assert done.returncode == 2 and "no answer within" in done.stderr, done
    return "a command does not wait for ever for a coordinator that says nothing"


def nothing_is_answered(fleet: Fleet, folder: Path, caller: Host, place: Host, say: Callable[[str], None]) -> None:
    """No method of any service answers whoever shows nothing or the wrong thing."""
    proto = Path(__file__).parent.parent / "proto/proto/regretta/v1"
    files = [str(path) for path in sorted(proto.glob("*.proto"))]
    trust = str(folder / "certs/ca.pem")

    def probe(port: int, key: str = "", chain: str = "", token: str = "") -> list[str]:
        target = f"{place.address}:{port}"
        done = caller.run([sys.executable, "-c", PROBE, target, trust, key, chain, token, *files], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    for port, token in ((CERTIFICATE, ""), (CERTIFICATE, TOKEN), (TOKENS, ""), (TOKENS, WRONG)):
        answers = probe(port, token=token)
        assert len(answers) >= 12 and all(answer.endswith(" UNAUTHENTICATED") for answer in answers), answers
    # The same calls of somebody who may: they are calls that the coordinator knows.
    known = probe(TOKENS, token=TOKEN)
    assert not any("UNAUTHENTICATED" in answer or "UNIMPLEMENTED" in answer for answer in known), known
    say(f"{len(known)} methods answer UNAUTHENTICATED without token or certificate")


def admitted(fleet: Fleet, folder: Path, caller: Host, place: Host, say: Callable[[str], None]) -> None:
    """The right ones get in, and find nothing of those who did not."""
    certs = folder / "certs"
    right = {
        CERTIFICATE: ("--tls-ca", str(certs / "ca.pem"), *identity((str(certs / "client.pem"), str(certs / "client.key")))),
        TOKENS: ("--tls-ca", str(certs / "ca.pem"), "--token-file", str(folder / "token")),
        PLAIN: ("--token-file", str(folder / "token")),
    }
    for port, words in right.items():
        scheme = "http" if port == PLAIN else "https"
        at = ("--coordinator", f"{scheme}://{place.address}:{port}", *words)
        assert fleet.ask(caller, "study", "list", *at) == [], "a study of a stranger was taken"
    name = fleet.ask(caller, "study", "list", "--coordinator", f"https://{place.address}:{CERTIFICATE}", *right[CERTIFICATE], "--tls-name", "coordinator.test")
    assert name == []
    say("the right certificates and tokens are let in, and no study of a stranger is there")
    for host_log in ("by-certificate", "by-token", "plain"):
        assert "a worker registered" not in fleet.said(host_log), host_log


def wire(fleet: Fleet, folder: Path, caller: Host, place: Host, say: Callable[[str], None]) -> None:
    """A study goes in, is computed and comes back over TLS, and nobody on the way can read it."""
    at = ("--coordinator", f"https://{place.address}:{TOKENS}", "--tls-ca", str(folder / "certs/ca.pem"), "--token-file", str(folder / "token"))
    fleet.network.listen(SECRET)
    fleet.ask(caller, "study", "submit", str(folder / "study.toml"), *at)
    worker = fleet.start(caller, "admitted", "worker", "--name", "admitted", "--slots", "1", "--cache", str(folder / "cache"), *at)
    assert fleet.ask(caller, "study", "watch", SECRET, *at)["state"] == "done"
    fetched = fleet.call(caller, "study", "fetch", SECRET, "--out", str(folder / "fetched"), *at)
    assert fetched.returncode == 0, fetched.stderr
    assert fleet.stop(worker) == 0
    encrypted = fleet.network.overheard(SECRET)
    plain = ("--coordinator", f"http://{place.address}:{PLAIN}", "--token-file", str(folder / "token"))
    fleet.ask(caller, "study", "submit", str(folder / "study.toml"), *plain)
    readable = fleet.network.overheard(SECRET)
    assert encrypted == 0 and readable > 0, f"readable in {encrypted} encrypted and {readable} plain frames"
    say("nothing of a study can be read on the wire with TLS, and something without")
