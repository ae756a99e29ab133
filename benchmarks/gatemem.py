"""Who is told what, and whether what was to be forgotten is gone, played on the GateMem set.

    python -m benchmarks.gatemem PATH [--results FILE] [--conversations N]

PATH is the folder with messages.jsonl, access.jsonl, forget.jsonl and questions.jsonl. Its people
are members, its derived channels are channels with overwrites; each line of forget.jsonl is a
manager's /memory forget by value. For each question everything that its asker may hear at that time
is given, unranked. FILE is for score.py, which is run where it stands beside PATH. Ends with 1
where a message outside the audience, or one that holds a forgotten value, was given.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.audience import OriginKind, Place
from bot.identifiers import ChannelId, GuildId, MessageId, UserId
from bot.memory.listening import Actor
from bot.memory.working import newest_entries
from bot.privacy.hearing import Everyone, Readers, ServerRooms
from bot.storage.statements import Transaction
from bot.turn.begin import capture_messages
from bot.turn.messages import IncomingMessage, Person
from tests.talk import Talk, open_talk

Line = Mapping[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)
MANAGER = UserId(1_000)
EVERYTHING = 100_000


@dataclass
class Server:
    """One conversation as a server: its channels, its members, what happens in it."""

    guild: GuildId
    access: Line
    messages: list[Line] = field(default_factory=list[Line])
    forgets: list[Line] = field(default_factory=list[Line])
    questions: list[Line] = field(default_factory=list[Line])

    def __post_init__(self) -> None:
        people = [one["principal_id"] for one in self.access["principals"]]
        base = int(self.guild) * 1_000
        self.users = {name: UserId(base + n) for n, name in enumerate(people, 1)}
        channels = self.access["derived_channels"]
        self.channels = {name: ChannelId(base + 500 + n) for n, name in enumerate(channels)}
        self.rooms = ServerRooms(
            readers={
                self.channels[name]: Readers(
                    everyone=Everyone.CLOSED,
                    granted=frozenset(self.users[member] for member in members),
                )
                for name, members in channels.items()
            }
        )

    def place(self, line: Line) -> Place:
        channel = self.channels[line["visibility"]["channel"]]
        return Place(kind=OriginKind.CHANNEL, guild_id=self.guild, channel_id=channel)


class Servers:
    """The permissions of all of them, as a transport would know them."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = {server.guild: server for server in servers}

    async def rooms(self, guild: GuildId) -> ServerRooms | None:
        return self._servers[guild].rooms

    async def readable_by(self, guild: GuildId, user: UserId) -> frozenset[ChannelId]:
        readers = self._servers[guild].rooms.readers
        return frozenset(room for room, who in readers.items() if user in who.granted)


def read(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def servers_of(folder: Path, most: int | None) -> list[Server]:
    found = {
        line["conversation"]: Server(guild=GuildId(number), access=line)
        for number, line in enumerate(read(folder / "access.jsonl")[:most], 1)
    }
    for name in ("messages", "forget", "questions"):
        for line in read(folder / f"{name}.jsonl"):
            if (server := found.get(line["conversation"])) is not None:
                {"messages": server.messages, "forget": server.forgets}.get(
                    name, server.questions
                ).append(line)
    return list(found.values())


async def play(talk: Talk, server: Server) -> Iterator[Line]:
    """One result for each question, each asked when the memory may know what it may know."""
    ids: dict[MessageId, str] = {}
    results: list[Line] = []
    forgets, questions = _by_turn(server.forgets, "turn"), _by_turn(server.questions, "as_of")
    for number, line in enumerate(server.messages, 1):
        message = _message(server, line, number)
        ids[message.id] = line["message_id"]
        await _say(talk, message)
        for forget in forgets.get(line["turn"], ()):
            actor = Actor(user=MANAGER, is_manager=True)
            for value in forget["values"]:
                await talk.app.receiver.forget_words(value, server.guild, actor)
        for question in questions.get(line["turn"], ()):
            heard = await _heard(talk, server, server.users[question["asker"]])
            results.append(
                {
                    "question_id": question["question_id"],
                    "retrieved": [ids[message] for message in heard],
                    "context": None,
                }
            )
    return iter(results)


def _by_turn(lines: Sequence[Line], key: str) -> Mapping[int, list[Line]]:
    found: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        found[line[key]].append(line)
    return found


def _message(server: Server, line: Line, number: int) -> IncomingMessage:
    return IncomingMessage(
        id=MessageId(int(server.guild) * 100_000 + number),
        place=server.place(line),
        author=Person(id=server.users[line["speaker_id"]], name=line["speaker"]),
        text=line["text"],
        sent_at=START + timedelta(minutes=number),
        locale="en-US",
    )


async def _say(talk: Talk, message: IncomingMessage) -> None:
    services = talk.app.services
    origin = await services.origins.of(message.place)
    persona = await services.personas.main(message.place.guild_key)

    async def job(tx: Transaction) -> None:
        await capture_messages(
            tx, services, origin, persona.lineage, persona, (message,), {message.id}
        )

    await services.database.write(job)


async def _heard(talk: Talk, server: Server, asker: UserId) -> list[MessageId]:
    """Every entry that an answer for the asker alone may be told from."""
    services = talk.app.services
    here = await services.origins.of_server(server.guild)
    persona = await services.personas.main(server.guild)
    audience = await services.audiences.of_person(here, asker)
    rooms = json.dumps(audience.ids)
    found = await services.database.read(
        lambda db: newest_entries(db, rooms, persona.lineage, since=START, most=EVERYTHING)
    )
    return [
        entry.message_id
        for _, entries in found.values()
        for entry in entries
        if entry.message_id is not None
    ]


async def run(folder: Path, results: Path, most: int | None) -> None:
    servers = servers_of(folder, most)
    with (
        tempfile.TemporaryDirectory() as scratch,
        results.open("w", encoding="utf-8") as file,
    ):
        async with open_talk(Path(scratch), rooms=Servers(servers)) as talk:
            for number, server in enumerate(servers, 1):
                for result in await play(talk, server):
                    file.write(f"{json.dumps(result)}\n")
                print(f"{number} of {len(servers)} conversations", file=sys.stderr)


def problems(folder: Path, results: Path) -> int:
    """What score.py says, printed; 1 where it found something that must not be."""
    score = folder.parent / "score.py"
    if not score.exists():
        print(f"{score} is not there; the results are in {results}")
        return 0
    table = results.with_suffix(".json")
    command = [sys.executable, str(score), str(folder / "questions.jsonl"), str(results)]
    output = subprocess.run(  # noqa: S603 - the scorer that lies beside the set
        [*command, "--json", str(table)], capture_output=True, text=True, check=True
    ).stdout
    print(output)
    return int("outside its derived audience" in output or "forgotten value" in output)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    results = Path(tempfile.gettempdir()) / "gatemem.jsonl"
    parser.add_argument("--results", type=Path, default=results)
    parser.add_argument("--conversations", type=int, default=None)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.path, arguments.results, arguments.conversations))
    return problems(arguments.path, arguments.results)


if __name__ == "__main__":
    sys.exit(main())
