"""Plays a room until it is killed, again for each number on standard input. Argument: FOLDER.

Each time in a process of its own, forked from this one: that saves the second of starting Python.
It says what it is sure of: `pid N`, `said ID...`, `ran RUN`, `undone RUN`; after a death, `died`.
And `embedding` where vectors are asked for: what follows is the commit.
"""

import asyncio
import os
import random
import sys
from datetime import timedelta
from pathlib import Path

from bot.identifiers import RunId
from tests.handoff.answers import CHUNKS, Answer
from tests.handoff.room import ANN, BEN, Room, open_room
from tests.talk import START, FakeClock


def tell(*words: object) -> None:
    """One write to a pipe comes whole or not at all."""
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode())


def any_answer(chance: random.Random) -> Answer:
    return Answer(
        places=[chance.randint(0, CHUNKS) for _ in range(5)],
        retains=[chance.random() < 0.4 for _ in range(CHUNKS)],
        goes_on=[chance.randint(0, 2) for _ in range(CHUNKS)],
        settles=frozenset({1} if chance.random() < 0.3 else ()),
    )


async def talk(room: Room, chance: random.Random) -> None:
    """Some lines, and the run that takes them over; now and then the run is undone."""
    lines = [f"tomato number{chance.randrange(10**9)}" for _ in range(chance.randint(1, 6))]
    tell("said", *await room.say(*lines, by=chance.choice((ANN, BEN, None))))
    room.clock.pass_(minutes=40)
    tell("said", *await room.say("a tomato for the evening"))
    room.model.clear()
    room.model.on(any_answer(chance).to)
    room.model.on(lambda _: tell("embedding"), to="embeddings")
    outcome = await room.worked()
    tell("ran", outcome.run)
    if chance.random() < 0.1:
        await room.undo(RunId(outcome.run))
        tell("undone", outcome.run)


async def play(folder: Path, number: int) -> None:
    clock = FakeClock(time=START + timedelta(hours=number * 12))
    chance = random.Random(number)
    async with open_room(folder, clock=clock, embedder=True, max_matters=3) as room:
        tell("open")
        while True:
            await talk(room, chance)


def main(folder: Path) -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(play(folder, int(line)))
        tell("pid", child)
        os.waitpid(child, 0)
        tell("died")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
