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

TOKEN, WRONG = "correct-horse-battery-staple-4242", "wrong-horse-battery-staple-4242"
NAME, ELSE_ADDRESS = "coordinator.test", "10.77.0.250"
SOON = 20  # seconds; nothing here takes more than six on an idle machine
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

# Ports of coordinators on the guarded host, by what they ask for or have.
CERTIFICATE, TOKENS, PLAIN, ELSEWHERE, EXPIRED, OWN, MUTE = range(PORT, PORT + 7)

# Calls everything that the service files have, and reflection, and prints what comes of it.
PROBE = """
import re, sys, grpc
target, authority, token, *files = sys.argv[1:]
metadata = [("authorization", "Bearer " + token)] if token else []
calls = [f"grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")]
for file in files:
    for service, body in re.findall(r"service (\\w+) {(.*?)\\n}", open(file).read(), re.S):
        calls += [f"regretta.v1.{service}/{method}" for method in re.findall(r"rpc (\\w+)", body)]
with grpc.secure_channel(target, grpc.ssl_channel_credentials(open(authority, "rb").read())) as channel:
    for call in calls:
        try:
            answers = list(channel.stream_stream("/" + call)(iter([b""]), metadata=metadata, timeout=10))
            print(call, "ANSWERED", len(answers))
        except grpc.RpcError as error:
            print(call, error.code().name)
"""

# Accepts connections and says nothing.
SILENT = """
import socket, sys, time
with socket.create_server((sys.argv[1], int(sys.argv[2]))):
    print("here", flush=True)
    time.sleep(300)
"""

# Begins a TLS handshake and stops.
HALF = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=25) as stream:
    stream.sendall(b"\\x16\\x03\\x01")
    print("closed" if not stream.recv(100) else "answered")
"""

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)"


@dataclass
class Case:
    """A caller, what it shows, and what it must hear, as a user and as a worker."""

    who: str
    words: tuple[str, ...]
    hears: str
    worker_hears: str = ""


def identity(pair: tuple[str, str]) -> tuple[str, ...]:
    return ("--tls-cert", pair[0], "--tls-key", pair[1])


class Doors:
    """Coordinators with doors of all kinds on one host, and a caller on another."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet
        self.place, self.caller = fleet.network.add("guarded"), fleet.network.add("caller")
        self.folder = fleet.folder / "access"
        self.folder.mkdir()
        self.study, self.stolen = self.folder / "study.toml", self.folder / "stolen"
        self.study.write_text(STUDY)
        self.token, self.wrong = (("--token-file", self.write(text)) for text in (TOKEN, WRONG))
        for out in ("certs", "others"):
            hosts = ("--host", self.place.address, "--host", NAME)
            made = fleet.call(self.place, "cert", "--out", str(self.folder / out), *hosts)
            assert made.returncode == 0, made.stderr
        self.authority = Authority(self.folder / "authority")
        self.trust = ("--tls-ca", str(self.folder / "certs/ca.pem"))
        self.trust_others = ("--tls-ca", str(self.folder / "others/ca.pem"))
        self.trust_own = ("--tls-ca", str(self.folder / "authority/ca.pem"))
        self.open()

    def write(self, text: str) -> str:
        path = self.folder / text.split("-")[0]
        path.write_text(text)
        return str(path)

    def pair(self, out: str, whose: str) -> tuple[str, str]:
        return (str(self.folder / out / f"{whose}.pem"), str(self.folder / out / f"{whose}.key"))

    def client(self, name: str, first: int, last: int) -> tuple[str, ...]:
        return identity(self.authority.sign(name, "client", self.place.address, first, last))

    def at(self, port: int, scheme: str = "https") -> tuple[str, ...]:
        return ("--coordinator", f"{scheme}://{self.place.address}:{port}")

    def open(self) -> None:
        sign, here, made = self.authority.sign, self.place.address, identity(self.pair("certs", "server"))
        for name, port, words in (
            ("by-certificate", CERTIFICATE, (*made, *self.trust, "--metrics", "127.0.0.1:9090")),
            ("by-token", TOKENS, (*made, *self.token)),
            ("plain", PLAIN, (*self.token, "--insecure")),
            ("elsewhere", ELSEWHERE, (*identity(sign("elsewhere", "server", ELSE_ADDRESS)), *self.token)),
            ("expired", EXPIRED, (*identity(sign("expired", "server", here, -30, -1)), *self.token)),
            ("own", OWN, (*identity(sign("server", "server", here)), *self.trust_own)),
        ):
            self.fleet.coordinator(self.place, name, *words, port=port)

    def strangers(self) -> list[Case]:
        mine, others = identity(self.pair("certs", "client")), identity(self.pair("others", "client"))
        server = identity(self.pair("certs", "server"))
        by_certificate, by_token = (*self.at(CERTIFICATE), *self.trust), (*self.at(TOKENS), *self.trust)
        own, neither = (*self.at(OWN), *self.trust_own), "valid token or client certificate"
        return [
            Case("no certificate", by_certificate, neither),
            Case("a token where certificates are asked for", (*by_certificate, *self.token), neither),
            Case("a certificate of another authority", (*by_certificate, *others), "regretta cert"),
            Case("the server's certificate as a client's", (*by_certificate, *server), "ertificate"),
            Case("an expired certificate", (*own, *self.client("old", -30, -1)), "xpired"),
            Case("a certificate that is not valid yet", (*own, *self.client("new", 1, 30)), "ertificate"),
            Case("a coordinator of another authority", (*self.at(CERTIFICATE), *self.trust_others, *others), "peer certificate"),
            Case("a certificate for another address", (*self.at(ELSEWHERE), *self.trust_own, *self.token), "not valid for name"),
            Case("a certificate for another name", (*by_certificate, *mine, "--tls-name", "other.test"), "not valid for name"),
            Case("a coordinator with an expired certificate", (*self.at(EXPIRED), *self.trust_own, *self.token), "certificate expired"),
            Case("no authority to trust", (*self.at(TOKENS), *self.token), "--tls-ca"),
            Case("no TLS where it is asked for", (*self.at(TOKENS, "http"), *self.token), "https://"),
            Case("TLS where there is none", (*self.at(PLAIN), *self.trust, *self.token), "use http://", "http:// if not"),
            Case("no token", by_token, "valid token"),
            Case("a wrong token", (*by_token, *self.wrong), "valid token"),
            Case("a certificate where tokens are asked for", (*by_token, *mine), "valid token"),
            Case("no token, not encrypted", self.at(PLAIN, "http"), "valid token"),
        ]

    def friends(self) -> list[tuple[str, ...]]:
        mine = identity(self.pair("certs", "client"))
        return [
            (*self.at(CERTIFICATE), *self.trust, *mine),
            (*self.at(CERTIFICATE), *self.trust, *mine, "--tls-name", NAME),
            (*self.at(TOKENS), *self.trust, *self.token),
            (*self.at(PLAIN, "http"), *self.token),
            (*self.at(ELSEWHERE), *self.trust_own, *self.token, "--tls-name", ELSE_ADDRESS),
            (*self.at(OWN), *self.trust_own, *self.client("client", -1, 1)),
        ]

    def refuse(self, case: Case) -> str:
        """Every command ends with exit code 2 and the reason, and has printed nothing."""
        commands = {
            "list": ("study", "list"),
            "submit": ("study", "submit", str(self.study)),
            "fetch": ("study", "fetch", SECRET, "--out", str(self.stolen)),
            "worker": ("worker", "--name", "stranger", "--slots", "1", "--patience", "2"),
        }
        longest = 0.0
        for name, words in commands.items():
            began = time.monotonic()
            try:
                done = self.fleet.call(self.caller, *words, *case.words, seconds=SOON)
            except subprocess.TimeoutExpired:
                raise RuntimeError(f"{case.who}: {name} was not refused within {SOON} s") from None
            longest = max(longest, time.monotonic() - began)
            hears = (case.worker_hears if name == "worker" else "") or case.hears
            assert done.returncode == 2, f"{case.who}: {name} ended with {done.returncode}: {done.stderr}"
            assert hears in done.stderr, f"{case.who}: {name} does not hear {hears!r}: {done.stderr}"
            assert not done.stdout and TOKEN not in done.stderr, f"{case.who}: {name} got {done.stdout!r}, {done.stderr!r}"
        return f"refused within {longest:.1f} s: {case.who}"

    def half_way(self) -> str:
        command = [sys.executable, "-c", HALF, self.place.address, str(CERTIFICATE)]
        done = self.caller.run(command, capture_output=True, text=True)
        assert done.stdout.strip() == "closed", f"who stops half-way keeps a place: {done.stdout}{done.stderr}"
        return "who stops half-way through the handshake is let go"

    def unanswered(self) -> str:
        command = [sys.executable, "-c", SILENT, self.place.address, str(MUTE)]
        with self.place.spawn(command, stdout=subprocess.PIPE) as mute:
            mute.stdout.readline()
            try:
                done = self.fleet.call(self.caller, "study", "list", *self.at(MUTE), *self.trust, seconds=40)
            finally:
                mute.kill()
        assert done.returncode == 2 and "no answer within" in done.stderr, done
        return "a command does not wait for ever for a coordinator that says nothing"

    def probe(self, port: int, token: str) -> list[str]:
        proto = Path(__file__).resolve().parent.parent / "proto/proto/regretta/v1"
        words = (f"{self.place.address}:{port}", self.trust[1], token, *map(str, sorted(proto.glob("*.proto"))))
        done = self.caller.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def nothing_is_answered(self) -> str:
        """No method of any service answers whoever shows nothing or the wrong thing."""
        known = self.probe(TOKENS, TOKEN)
        # They are methods that there are: somebody who may call them hears something else.
        assert len(known) >= 12 and not any("UNAUTHENTICATED" in line or "UNIMPLEMENTED" in line for line in known), known
        for port, token in ((CERTIFICATE, ""), (CERTIFICATE, TOKEN), (TOKENS, ""), (TOKENS, WRONG)):
            answers = self.probe(port, token)
            assert len(answers) == len(known) and all(line.endswith(" UNAUTHENTICATED") for line in answers), answers
        return f"all {len(known)} methods answer UNAUTHENTICATED without a valid token or certificate"

    def nothing_is_there(self) -> str:
        """The right ones get in, and find nothing of those who did not."""
        for words in self.friends():
            assert self.fleet.ask(self.caller, "study", "list", *words) == [], f"a study of a stranger was taken: {words}"
        for name in ("by-certificate", "by-token", "plain", "elsewhere", "expired", "own"):
            assert "a worker registered" not in self.fleet.said(name), f"a stranger works for {name}"
        assert not self.stolen.exists(), "a stranger fetched something"
        away = self.caller.run([sys.executable, "-c", CONNECT, self.place.address, "9090"], capture_output=True)
        assert away.returncode != 0, "metrics on loopback can be reached from other hosts"
        return "the right certificates and tokens are let in, and find nothing of those who were not"

    def nothing_is_readable(self) -> str:
        """A study goes in, is computed and comes back over TLS, and nobody on the way can read it."""
        fleet, caller, at = self.fleet, self.caller, (*self.at(TOKENS), *self.trust, *self.token)
        fleet.network.listen(SECRET)
        fleet.ask(caller, "study", "submit", str(self.study), *at)
        cache = ("--cache", str(self.folder / "cache"))
        worker = fleet.start(caller, "admitted", "worker", "--name", "admitted", "--slots", "1", *cache, *at)
        assert fleet.ask(caller, "study", "watch", SECRET, *at)["state"] == "done"
        fetched = fleet.call(caller, "study", "fetch", SECRET, "--out", str(self.folder / "fetched"), *at)
        assert fetched.returncode == 0, fetched.stderr
        assert fleet.stop(worker) == 0
        encrypted = fleet.network.overheard(SECRET)
        fleet.ask(caller, "study", "submit", str(self.study), *self.at(PLAIN, "http"), *self.token)
        plain = fleet.network.overheard(SECRET)
        assert encrypted == 0 and plain > 0, f"readable in {encrypted} encrypted and {plain} plain frames"
        return "nothing of a study can be read on the wire with TLS, and something without"


def check(fleet: Fleet, say: Callable[[str], None]) -> None:
    doors = Doors(fleet)
    with ThreadPoolExecutor(6) as pool:
        waits = [pool.submit(doors.half_way), pool.submit(doors.unanswered)]
        refusals = [pool.submit(doors.refuse, case) for case in doors.strangers()]
        for done in refusals + waits:
            say(done.result())
    say(doors.nothing_is_answered())
    say(doors.nothing_is_there())
    say(doors.nothing_is_readable())
