"""Values that a server had forgotten: kept out until somebody entitled says them again.

Of a value only its length and a keyed hash are kept, so that the file does not hold it.
"""

import hashlib
import hmac
import unicodedata
from collections import defaultdict
from collections.abc import Iterator

from bot.clock import Clock, to_ms
from bot.identifiers import GuildId, UserId
from bot.storage.database import Database
from bot.storage.secret import secret_of
from bot.storage.statements import Snapshot, Transaction

_SIGNS = 16

_Marks = dict[GuildId, frozenset[tuple[int, str]]]


class ForgottenValues:
    """All of them, in memory: every text that is to be kept is held against them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._secret = b""
        self._marks: _Marks = {}

    async def load(self) -> None:
        """Read them from the file; once, before the first message."""
        self._secret = await self._database.write(secret_of)
        self._marks = await self._database.read(_read)

    def holds(self, text: str, guild: GuildId) -> bool:
        """Whether a text holds a value that was forgotten in a server."""
        marks = self._marks.get(guild)
        return bool(marks) and any(mark in marks for mark in self._found(text, marks))

    def holds_any(self, text: str) -> bool:
        """The same for a text of which nobody knows the server."""
        return any(self.holds(text, guild) for guild in self._marks)

    async def keep_out(self, tx: Transaction, value: str, guild: GuildId, by: UserId) -> None:
        """Keep a value out of a server from the commit on."""
        wanted = normal(value)
        mark = (len(wanted), self._digest(wanted))
        now = to_ms(self._clock.now())
        await tx.execute(
            "INSERT INTO erasures (kind, subject, guild_id, requested_by, requested_at)"
            " VALUES ('value', ?, ?, ?, ?)",
            (_stored(mark), guild, by, now),
        )
        tx.after_commit(lambda: self._set(guild, self._marks.get(guild, frozenset()) | {mark}))

    async def let_in(self, tx: Transaction, text: str, guild: GuildId) -> None:
        """Somebody entitled says a text: what it holds is no longer kept out."""
        marks = self._marks.get(guild, frozenset())
        gone = frozenset(self._found(text, marks)) & marks
        for mark in gone:
            await tx.execute(
                "DELETE FROM erasures WHERE kind = 'value' AND subject = ? AND guild_id = ?",
                (_stored(mark), guild),
            )
        if gone:
            tx.after_commit(lambda: self._set(guild, self._marks.get(guild, frozenset()) - gone))

    def _found(self, text: str, marks: frozenset[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The marks of everything in a text that is as long as one of the values."""
        folded = normal(text)
        lengths = {length for length, _ in marks}
        starts = [
            place
            for place, sign in enumerate(folded)
            if not (place and _in_one_word(folded[place - 1], sign))
        ]
        for start in starts:
            for length in lengths:
                if stands_alone(folded, start, start + length):
                    yield length, self._digest(folded[start : start + length])

    def _digest(self, normalised: str) -> str:
        return hmac.digest(self._secret, normalised.encode(), hashlib.sha256).hex()[: 2 * _SIGNS]

    def _set(self, guild: GuildId, marks: frozenset[tuple[int, str]]) -> None:
        self._marks[guild] = marks


def normal(text: str) -> str:
    """Words as they compare: case, width and white space folded."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def says(text: str, value: str) -> bool:
    """Whether a text holds a value, as whole words."""
    folded, wanted = normal(text), normal(value)
    start = folded.find(wanted) if wanted else -1
    while start >= 0:
        if stands_alone(folded, start, start + len(wanted)):
            return True
        start = folded.find(wanted, start + 1)
    return False


def stands_alone(folded: str, start: int, end: int) -> bool:
    """Whether what stands there is cut out of no word; scripts without spaces have none."""
    if end > len(folded):
        return False
    before = start > 0 and _in_one_word(folded[start - 1], folded[start])
    return not before and not (end < len(folded) and _in_one_word(folded[end - 1], folded[end]))


def _in_one_word(left: str, right: str) -> bool:
    return _is_spaced_letter(left) and _is_spaced_letter(right)


def _is_spaced_letter(sign: str) -> bool:
    return (sign.isalnum() or sign == "_") and not "\u3040" <= sign <= "\u9fff"


def _stored(mark: tuple[int, str]) -> str:
    return f"{mark[0]}:{mark[1]}"


async def _read(db: Snapshot) -> _Marks:
    marks: defaultdict[GuildId, set[tuple[int, str]]] = defaultdict(set)
    for row in await db.fetch_all("SELECT subject, guild_id FROM erasures WHERE kind = 'value'"):
        length, _, digest = str(row["subject"]).partition(":")
        marks[GuildId(row["guild_id"])].add((int(length), digest))
    return {guild: frozenset(found) for guild, found in marks.items()}
