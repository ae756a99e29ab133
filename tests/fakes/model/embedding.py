"""Deterministic embeddings: texts that share words, or parts of words, have near vectors."""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT_DIMENSIONS = 256


def embed(text: str, dimensions: int = DEFAULT_DIMENSIONS) -> list[float]:
    """A vector of length 1, made by hashing words and their parts of three letters."""
    vector = [0.0] * dimensions
    for feature in _features(text):
        digest = hashlib.blake2b(feature.encode(errors="replace"), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        vector[number % dimensions] += 1.0 if number >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def _features(text: str) -> Iterator[str]:
    for word in re.findall(r"\w+", text.lower()):
        yield word
        yield from (word[start : start + 3] for start in range(len(word) - 2))


def as_base64(vector: Sequence[float]) -> str:
    """Little-endian 32-bit floats, the form that the openai client asks for."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
