"""A certificate that nobody has signed but itself."""

import subprocess
import sys
from pathlib import Path


def make_certificate(folder: Path) -> dict[str, str]:
    """Make one in a process of its own: the library for it warns when it is loaded."""
    made = folder / "certificate.pem", folder / "key.pem"
    subprocess.run([sys.executable, "-c", CERTIFICATE, *map(str, made)], check=True, timeout=30)
    return {"BACKBURNER_TLS_CERTIFICATE": str(made[0]), "BACKBURNER_TLS_KEY": str(made[1])}


CERTIFICATE = """
import sys
from datetime import datetime, timedelta
from pathlib import Path
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
key = ec.generate_private_key(ec.SECP256R1())
name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
start = datetime(2020, 1, 1)
made = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + timedelta(days=9999))
plain = form.PrivateFormat.PKCS8, form.NoEncryption()
pem = form.Encoding.PEM
Path(sys.argv[1]).write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
Path(sys.argv[2]).write_bytes(key.private_bytes(pem, *plain))
"""
