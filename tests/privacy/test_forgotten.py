"""What a server had forgotten is known again by its hash alone, wherever it stands in a text."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.identifiers import GuildId, UserId
from bot.privacy.forgotten import ForgottenValues, normal, says
from bot.storage.database import Database
from tests.talk import FakeClock

GUILD, MANAGER = GuildId(500), UserId(7)
VALUES = ["2,200 USD", "atl_TMP_4Q7L-X2MP", "8%", "合言葉", "the blue   Pot", "(555) 0199", "Ünal"]
IN_A_TEXT = [
    ("it costs 2,200 USD now", True),
    ("it costs 2,200 usd.", True),
    ("it costs 12,200 USD", False),
    ("it costs 2,200 USDT", False),
    ("the code atl_tmp_4q7l-x2mp!", True),
    ("the code xatl_tmp_4q7l-x2mp", False),
    ("about 8% of it", True),
    ("about 18% of it", False),
    ("今日の合言葉は猫です", True),
    ("under The\nBlue pot, I think", True),
    ("call (555) 0199 at night", True),
    ("ask ÜNAL about it", True),
    ("nothing of the kind", False),
    ("", False),
]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "madeleine.db")
    yield database
    await database.close()


async def opened(database: Database) -> ForgottenValues:
    values = ForgottenValues(database, FakeClock())
    await values.load()
    return values


async def keep_out(values: ForgottenValues, database: Database, value: str) -> None:
    await database.write(partial(values.keep_out, value=value, guild=GUILD, by=MANAGER))


@pytest.mark.parametrize(("text", "expected"), IN_A_TEXT)
async def test_a_value_is_found_as_whole_words(
    database: Database, text: str, *, expected: bool
) -> None:
    values = await opened(database)
    for value in VALUES:
        await keep_out(values, database, value)
    assert values.holds(text, GUILD) is expected
    assert any(says(text, value) for value in VALUES) is expected


async def test_what_is_forgotten_in_one_server_is_known_in_another(database: Database) -> None:
    values = await opened(database)
    await keep_out(values, database, "8%")
    assert not values.holds("8% of it", GuildId(600))
    assert values.holds_any("8% of it")


async def test_it_stays_out_after_a_restart_and_the_file_does_not_hold_it(
    database: Database,
) -> None:
    await keep_out(await opened(database), database, "xylophone-44")
    await database.fold_log()
    assert b"xylophone" not in database.path.read_bytes()
    assert (await opened(database)).holds("my xylophone-44", GUILD)


async def test_somebody_entitled_lets_it_in_again(database: Database) -> None:
    values = await opened(database)
    for value in ("8%", "2,200 USD"):
        await keep_out(values, database, value)
    await database.write(partial(values.let_in, text="it is 8% now", guild=GUILD))
    assert not values.holds("8%", GUILD)
    assert values.holds("2,200 USD", GUILD)
    assert not (await opened(database)).holds("8%", GUILD)


@given(st.text(max_size=60), st.text(min_size=1, max_size=12), st.text(max_size=60))
def test_the_hash_finds_what_the_text_says(before: str, value: str, after: str) -> None:
    wanted = normal(value)
    assume(wanted)
    values = ForgottenValues.__new__(ForgottenValues)
    values._secret = b"secret"
    values._marks = {GUILD: frozenset({(len(wanted), values._digest(wanted))})}
    text = f"{before}{value}{after}"
    assert values.holds(text, GUILD) == says(text, value)
