"""Telling Discord of our commands, only when they changed: it counts every time."""

import hashlib
import json
import logging

import discord
from discord import app_commands

from bot.storage.state import ApplicationState

log = logging.getLogger(__name__)

_KEY = "commands_hash"


async def sync_commands(
    tree: app_commands.CommandTree[discord.Client], state: ApplicationState
) -> bool:
    """Send the commands where the hash of their translated payload is new; True where sent.

    A failure is logged and the bot goes on with the commands that Discord knows.
    """
    digest = await payload_hash(tree)
    if await state.read(_KEY) == digest:
        return False
    try:
        sent = await tree.sync()
    except (discord.HTTPException, app_commands.CommandSyncFailure) as error:
        log.warning("commands_not_synced", extra={"reason": str(error)})
        return False
    await state.write(_KEY, digest)
    log.info("commands_synced", extra={"commands": len(sent)})
    return True


async def payload_hash(tree: app_commands.CommandTree[discord.Client]) -> str:
    """A hash of what would be sent, translations included, and of whose commands they are."""
    translator = tree.translator
    if translator is None:
        raise RuntimeError("commands are sent translated: set the translator first")
    payload = [
        await command.get_translated_payload(tree, translator) for command in tree.get_commands()
    ]
    owned = {"application": tree.client.application_id, "commands": payload}
    encoded = json.dumps(owned, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
