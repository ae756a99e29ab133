"""Writes rows and says which are on disk, until it is killed. Arguments: FILE FIRST_NUMBER."""

import asyncio
import sys
from pathlib import Path

from bot.storage.database import Database
from bot.storage.statements import Transaction


async def main(path: Path, first: int) -> None:
    database = await Database.open(path)

    async def one(number: int) -> None:
        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO application_state (key, value) VALUES (?, ?)",
                (f"k{number}", "v" * 200),
            )

        await database.write(job)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()

    number = first
    while True:
        await asyncio.gather(*(one(number + offset) for offset in range(8)))
        number += 8


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
