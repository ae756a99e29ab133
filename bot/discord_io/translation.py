"""Names and descriptions of commands in every language of the catalogue."""

import discord
from discord import app_commands

from bot.i18n import catalogue, t


def text(key: str) -> app_commands.locale_str:
    """A command text by its key: English at once, other languages when commands are sent."""
    return app_commands.locale_str(t(f"commands.{key}", "en-US"), key=f"commands.{key}")


class CatalogueTranslator(app_commands.Translator):
    """Looks command texts up in the catalogue."""

    async def translate(
        self,
        string: app_commands.locale_str,
        locale: discord.Locale,
        context: app_commands.TranslationContextTypes,
    ) -> str | None:
        """The text in a language, or None where the catalogue has no such language."""
        del context
        key = string.extras.get("key")
        if not isinstance(key, str) or not catalogue().texts(locale.value):
            return None
        return t(key, locale.value)
