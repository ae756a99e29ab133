"""Which messages are for us."""

from bot.audience import OriginKind
from bot.identifiers import ChannelId
from bot.memory.quoting import without_hidden_signs
from bot.privacy.levels import Levels, PrivacyLevel
from bot.turn.messages import IncomingMessage


def says_something(text: str) -> bool:
    """Whether anybody sees anything in a message of that text."""
    return bool(without_hidden_signs(text).strip())


class Triggers:
    """Decides for each message whether it starts a turn."""

    def __init__(self, levels: Levels, *, answer_other_bots: bool, bot_exchanges: int) -> None:
        self._levels = levels
        self._answer_other_bots = answer_other_bots
        self._bot_exchanges = bot_exchanges
        self._bots_in_a_row: dict[ChannelId, int] = {}

    def starts_turn(self, message: IncomingMessage) -> bool:
        """Whether we answer: mentioned, replied to, or in a direct message - and allowed to."""
        if message.is_own or message.is_system or not message.may_answer:
            return False
        if self._levels.of(message.author.id, message.place.guild_key) is PrivacyLevel.FULL:
            return False
        for_us = _is_for_us(message)
        return self._bot_may(message, for_us=for_us) and for_us

    def _bot_may(self, message: IncomingMessage, *, for_us: bool) -> bool:
        """People always may; bots only where allowed, and not for ever among themselves."""
        channel = message.place.channel_id
        if not message.author.is_bot:
            self._bots_in_a_row.pop(channel, None)
            return True
        if not self._answer_other_bots:
            return False
        exchanges = self._bots_in_a_row.get(channel, 0) + for_us
        self._bots_in_a_row[channel] = exchanges
        return exchanges <= self._bot_exchanges


def _is_for_us(message: IncomingMessage) -> bool:
    """A mention calls us by itself; a reply or direct message has to say something."""
    says_it = says_something(message.text)
    if message.place.kind is OriginKind.DIRECT:
        return says_it
    return message.mentions_us or (message.replies_to_us and says_it)
