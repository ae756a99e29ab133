"""The secret of one file: what is kept as a keyed hash says nothing to whoever has not the file."""

import secrets

from bot.storage.statements import Transaction

_KEY = "secret"
_BYTES = 32


async def secret_of(tx: Transaction) -> bytes:
    """The secret of this file; it is made when it is first needed."""
    await tx.execute(
        "INSERT INTO application_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (_KEY, secrets.token_hex(_BYTES)),
    )
    row = await tx.fetch_one("SELECT value FROM application_state WHERE key = ?", (_KEY,))
    if row is None:
        raise RuntimeError("the secret that was just written is not there")
    return bytes.fromhex(row["value"])
