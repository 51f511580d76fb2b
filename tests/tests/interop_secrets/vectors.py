"""The ciphers of the secrets store, written from the specification with the library `cryptography`.

Reads requests from standard input, one JSON object in a line, and prints one reply for each:
{"encrypt": text, "public": line} -> [element, ...]; {"decrypt": [element, ...], "private": PEM} -> text; texts in base64.
{"legacy": text, "public": line} -> [element].
"""

import base64
import hashlib
import json
import os
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa, x25519
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MAGIC = b"scx25519"
PRIME = 2**255 - 19
OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def derive(secret, info, salt=None):
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=info).derive(secret)


def montgomery(edwards):
    y = int.from_bytes(edwards, "little") & (2**255 - 1)
    return ((1 + y) * pow(1 - y, -1, PRIME) % PRIME).to_bytes(32, "little")


def encrypt(text, key):
    if isinstance(key, rsa.RSAPublicKey):
        size = key.key_size // 8 // 2
        return [key.encrypt(text[at : at + size], OAEP) for at in range(0, len(text) or 1, size)]
    recipient = montgomery(key.public_bytes(*RAW))
    ephemeral = x25519.X25519PrivateKey.generate()
    header = MAGIC + b"\1" + ephemeral.public_key().public_bytes(*RAW)
    shared = ephemeral.exchange(x25519.X25519PublicKey.from_public_bytes(recipient))
    nonce = os.urandom(12)
    return [header + nonce + ChaCha20Poly1305(derive(shared, header + recipient)).encrypt(nonce, text, header)]


def encrypt_legacy(text, key):
    salt, nonce = os.urandom(32), os.urandom(12)
    secret = derive(key.public_bytes(*RAW), b"ed25519-chacha20poly1305", salt)
    return [salt + nonce + ChaCha20Poly1305(secret).encrypt(nonce, text, None)]


def decrypt(elements, key):
    if isinstance(key, rsa.RSAPrivateKey):
        return b"".join(key.decrypt(element, OAEP) for element in elements)
    (blob,) = elements
    assert blob.startswith(MAGIC + b"\1")
    header, nonce, sealed = blob[:41], blob[41:53], blob[53:]
    seed = key.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
    own = x25519.X25519PrivateKey.from_private_bytes(hashlib.sha512(seed).digest()[:32])
    shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(header[9:]))
    return ChaCha20Poly1305(derive(shared, header + own.public_key().public_bytes(*RAW))).decrypt(nonce, sealed, header)


def private_key(text):
    text = text.encode()
    if b"OPENSSH" in text:
        return serialization.load_ssh_private_key(text, None)
    return serialization.load_pem_private_key(text, None)


for line in sys.stdin:
    request = json.loads(line)
    if "decrypt" in request:
        elements = [base64.b64decode(element) for element in request["decrypt"]]
        reply = base64.b64encode(decrypt(elements, private_key(request["private"]))).decode()
    else:
        key = serialization.load_ssh_public_key(request["public"].encode())
        text = base64.b64decode(request.get("encrypt", request.get("legacy")))
        elements = encrypt(text, key) if "encrypt" in request else encrypt_legacy(text, key)
        reply = [base64.b64encode(element).decode() for element in elements]
    print(json.dumps(reply), flush=True)
