"""Certificates that `regretta cert` does not make: expired, not valid yet, for a chosen use."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
USES = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


class Authority:
    """Signs certificates; its own is `ca.pem` in its folder."""

    def __init__(self, folder: Path):
        folder.mkdir()
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        builder = self.builder(self.name, self.key, -30, 30)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.write("ca.pem", builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, first: int, last: int) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now + first * DAY).not_valid_after(now + last * DAY)
        )

    def sign(self, name: str, use: str, address: str, first: int = -1, last: int = 1) -> tuple[str, str]:
        """A certificate for an address, valid from and to these days from now; its file and that of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self.builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, first, last)
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(addresses, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([USES[use]]), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (
            self.write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self.write(f"{name}.key", key.private_bytes(*form)),
        )

    def write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.touch(0o600)
        path.write_bytes(content)
        return str(path)
