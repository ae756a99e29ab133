"""Vectors as they are stored: of length one, in half precision, which loses nothing that counts."""

import json
import math
import struct
from collections.abc import Iterable, Sequence

from bot.identifiers import LedgerId, LineageId, OriginId
from bot.storage.statements import Transaction


def ledger_partition(origin: OriginId, lineage: LineageId) -> str:
    """Under which name the episodes of one buffer are kept together."""
    return f"ledger:{lineage}:{origin}"


async def store_vector(
    tx: Transaction, partition: str, item: LedgerId, model: str, vector: Sequence[float]
) -> None:
    """Keep a vector in the place of the one that this model gave before."""
    await tx.execute(
        "INSERT OR REPLACE INTO embeddings (partition, model, item, vector) VALUES (?, ?, ?, ?)",
        (partition, model, f"{item}", packed(vector)),
    )


async def drop_vectors(tx: Transaction, partition: str, items: Iterable[LedgerId]) -> None:
    """Delete the vectors of all models: the text that they were made of is gone."""
    await tx.execute(
        "DELETE FROM embeddings WHERE partition = ?"
        " AND item IN (SELECT CAST(value AS TEXT) FROM json_each(?))",
        (partition, json.dumps(list(items))),
    )


def packed(vector: Sequence[float]) -> bytes:
    """The vector, scaled to length one, as little-endian 16-bit floats."""
    length = math.hypot(*vector) or 1.0
    return struct.pack(f"<{len(vector)}e", *(x / length for x in vector))
