"""REST: messages of a channel, and the reactions to them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.fakes.discord import message_rules, refusals, wire
from tests.fakes.discord.gateway import Intent
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.records import HOLD_NO_MESSAGES, MessageFlag
from tests.fakes.discord.routing import NO_CONTENT, Answer, RestRequest, route

if TYPE_CHECKING:
    from tests.fakes.discord.records import Channel, JsonObject, Message

FILE_LIMIT = 10 * 1024 * 1024
REQUEST_LIMIT = 25 * 1024 * 1024
HISTORY_LIMIT = 100
BULK_LIMITS = (2, 100)
NONCE_MEMORY_SECONDS = 300.0


def shown(request: RestRequest, message: Message) -> JsonObject:
    """A message as REST gives it to this application."""
    reads = Intent.MESSAGE_CONTENT in request.world.gateway.privileged_intents
    return wire.message_payload(message, request.world.bot, reads_content=reads)


def check_files(request: RestRequest) -> None:
    sizes = [len(file.content) for file in request.call.files]
    if any(size > FILE_LIMIT for size in sizes) or sum(sizes) > REQUEST_LIMIT:
        raise refusals.too_large()


async def create(request: RestRequest) -> Answer:
    channel, body = request.channel, request.body
    check_may_send(request, channel)
    message_rules.check_message(body, has_files=bool(request.call.files))
    check_files(request)
    if earlier := _same_nonce(request, channel):
        return 200, shown(request, earlier)
    message = request.world.post(
        channel,
        request.world.bot,
        body.get("content") or "",
        reply_to=_replied_to(request, channel),
        allowed_mentions=body.get("allowed_mentions"),
        files=request.call.files,
        embeds=body.get("embeds") or [],
        components=body.get("components") or [],
        flags=MessageFlag(body.get("flags") or 0),
        nonce=body.get("nonce"),
    )
    return 200, shown(request, message)


def check_may_send(request: RestRequest, channel: Channel) -> None:
    if channel.kind in HOLD_NO_MESSAGES:
        raise refusals.Refusal(400, 50008, "Cannot send messages in a non-text channel")
    if channel.recipient and not channel.recipient.accepts_direct_messages:
        raise refusals.direct_messages_closed()
    sending = Permission.SEND_MESSAGES_IN_THREADS if channel.thread else Permission.SEND_MESSAGES
    request.need(channel, sending)
    if channel.thread and channel.thread.locked:
        request.need(channel, Permission.MANAGE_THREADS)
    if request.body.get("embeds"):
        request.need(channel, Permission.EMBED_LINKS)
    if request.call.files:
        request.need(channel, Permission.ATTACH_FILES)


def _same_nonce(request: RestRequest, channel: Channel) -> Message | None:
    """With `enforce_nonce`, the message that already carries the nonce, from the last minutes."""
    nonce = request.body.get("nonce")
    if nonce is None or not request.body.get("enforce_nonce"):
        return None
    return next(
        (
            message
            for message in request.world.bot_messages(channel)
            if message.nonce == nonce
            and time.time() - message.created_at.timestamp() < NONCE_MEMORY_SECONDS
        ),
        None,
    )


def _replied_to(request: RestRequest, channel: Channel) -> Message | None:
    reference = request.body.get("message_reference")
    if not reference:
        return None
    if not request.world.can(request.world.bot, channel, Permission.READ_MESSAGE_HISTORY):
        raise refusals.Refusal(
            400, 160002, "Cannot reply without permission to read message history"
        )
    message = channel.messages.get(int(reference["message_id"]))
    if message is None and reference.get("fail_if_not_exists", True):
        raise refusals.invalid_form(
            "message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message"
        )
    return message


async def history(request: RestRequest) -> Answer:
    """The messages nearest to `before`, `after` or `around`, newest first."""
    channel, query = request.channel, request.call.query
    if not request.world.can(request.world.bot, channel, Permission.READ_MESSAGE_HISTORY):
        return 200, []
    limit = int(query.get("limit", 50))
    if not 1 <= limit <= HISTORY_LIMIT:
        raise refusals.invalid_form(
            "limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100."
        )
    messages = [one for one in channel.history if not one.is_ephemeral]
    chosen = _nearest(messages, query, limit)
    return 200, [shown(request, message) for message in reversed(chosen)]


def _nearest(messages: list[Message], query: dict[str, str], limit: int) -> list[Message]:
    """Of messages in order of age, the `limit` nearest to the id that was asked for."""
    if "after" in query:
        return [one for one in messages if one.id > int(query["after"])][:limit]
    if "around" in query:
        middle = int(query["around"])
        half = limit // 2
        older = [one for one in messages if one.id < middle][-half:] if half else []
        newer = [one for one in messages if one.id >= middle][: limit - half]
        return older + newer
    before = int(query["before"]) if "before" in query else None
    return [one for one in messages if before is None or one.id < before][-limit:]


async def get(request: RestRequest) -> Answer:
    request.need(request.channel, Permission.READ_MESSAGE_HISTORY)
    return 200, shown(request, request.message)


async def edit(request: RestRequest) -> Answer:
    message = request.message
    if message.author is not request.world.bot:
        if set(request.body) - {"flags"}:
            raise refusals.not_the_author()
        request.need(message.channel, Permission.MANAGE_MESSAGES)
    check_edit(request, message)
    request.world.revise(message, request.body, files=request.call.files)
    return 200, shown(request, message)


def check_edit(request: RestRequest, message: Message) -> None:
    """An edit obeys the limits, and may not leave a message empty."""
    body = request.body
    message_rules.check_parts(body)
    if message.channel.thread and message.channel.thread.archived:
        raise refusals.Refusal(400, 50083, "Thread is archived")
    left = [body.get(part, getattr(message, part)) for part in ("content", "embeds", "components")]
    if not any(left) and not message.attachments and not request.call.files:
        raise refusals.empty_message()
    check_files(request)


async def delete(request: RestRequest) -> Answer:
    message = request.message
    if message.author is not request.world.bot:
        request.need(message.channel, Permission.MANAGE_MESSAGES)
    request.world.erase([message], message.channel)
    return NO_CONTENT


async def bulk_delete(request: RestRequest) -> Answer:
    channel = request.channel
    request.need(channel, Permission.MANAGE_MESSAGES)
    ids = request.body.get("messages", [])
    least, most = BULK_LIMITS
    if not least <= len(ids) <= most:
        raise refusals.Refusal(
            400, 50016, "Provided too few or too many messages to delete (2 to 100)"
        )
    found = [channel.messages[int(one)] for one in ids if int(one) in channel.messages]
    request.world.erase(found, channel, bulk=True)
    return NO_CONTENT


# --- reactions


async def react(request: RestRequest) -> Answer:
    """Joining a reaction needs no permission of its own, starting one does."""
    message, emoji = request.message, _emoji(request)
    request.need(message.channel, Permission.READ_MESSAGE_HISTORY)
    if emoji not in message.reactions:
        request.need(message.channel, Permission.ADD_REACTIONS)
    request.world.add_reaction(message, request.world.bot, emoji)
    return NO_CONTENT


async def unreact(request: RestRequest) -> Answer:
    request.world.remove_reaction(request.message, request.world.bot, _emoji(request))
    return NO_CONTENT


async def remove_reaction_of(request: RestRequest) -> Answer:
    request.need(request.channel, Permission.MANAGE_MESSAGES)
    user = request.world.users.get(request.id("user"))
    if user is None:
        raise refusals.unknown_user()
    request.world.remove_reaction(request.message, user, _emoji(request))
    return NO_CONTENT


async def reacting_users(request: RestRequest) -> Answer:
    people = request.message.reactions.get(_emoji(request), [])
    return 200, [wire.user_payload(request.world.users[one]) for one in people]


def _emoji(request: RestRequest) -> str:
    return unquote(request.path["emoji"])


MESSAGES = "/channels/{channel}/messages"
REACTION = MESSAGES + "/{message}/reactions/{emoji}"
ROUTES = (
    route("GET", MESSAGES, history),
    route("POST", MESSAGES, create),
    route("POST", MESSAGES + "/bulk-delete", bulk_delete),
    route("GET", MESSAGES + "/{message}", get),
    route("PATCH", MESSAGES + "/{message}", edit),
    route("DELETE", MESSAGES + "/{message}", delete),
    route("PUT", REACTION + "/@me", react),
    route("DELETE", REACTION + "/@me", unreact),
    route("DELETE", REACTION + "/{user}", remove_reaction_of),
    route("GET", REACTION, reacting_users),
)
