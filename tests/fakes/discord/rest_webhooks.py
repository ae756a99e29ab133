"""REST: webhooks, through which the bot speaks under other names.

An interaction's token works like a webhook whose id is the application's: those requests are
handed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.discord import message_rules, refusals, rest_interactions, wire
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.records import (
    Channel,
    ChannelKind,
    Message,
    MessageFlag,
    User,
    Webhook,
)
from tests.fakes.discord.rest_messages import check_edit, check_files
from tests.fakes.discord.routing import NO_CONTENT, Answer, RestRequest, route

if TYPE_CHECKING:
    from tests.fakes.discord.records import JsonObject

WEBHOOKS_A_CHANNEL = 15
NAME_LIMIT = 80
FORBIDDEN_IN_NAMES = ("clyde", "discord")
FORBIDDEN_NAMES = ("everyone", "here")


def check_name(name: str, field: str) -> None:
    """Names of webhooks may not pass for Discord itself."""
    if not 1 <= len(name.strip()) <= NAME_LIMIT:
        raise refusals.invalid_form(
            field, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length."
        )
    lowered = name.lower()
    for word in FORBIDDEN_IN_NAMES:
        if word in lowered:
            raise refusals.invalid_form(
                field, "USERNAME_INVALID_CONTAINS", f'Username cannot contain "{word}"'
            )
    if lowered in FORBIDDEN_NAMES:
        raise refusals.invalid_form(field, "USERNAME_INVALID_EQUALS", "Username cannot be this")


# --- managing


async def create(request: RestRequest) -> Answer:
    channel, world = request.channel, request.world
    if channel.thread or channel.is_direct:
        raise refusals.Refusal(400, 50024, "Cannot execute action on this channel type")
    request.need(channel, Permission.MANAGE_WEBHOOKS)
    check_name(request.body.get("name") or "", "name")
    there = [one for one in world.webhooks.values() if one.channel is channel]
    if len(there) >= WEBHOOKS_A_CHANNEL:
        raise refusals.Refusal(400, 30007, "Maximum number of webhooks reached (15)")
    webhook = world.webhook(channel, request.body["name"], creator=world.bot)
    return 200, _shown(request, webhook)


async def list_channel(request: RestRequest) -> Answer:
    channel = request.channel
    request.need(channel, Permission.MANAGE_WEBHOOKS)
    return 200, [
        _shown(request, one) for one in request.world.webhooks.values() if one.channel is channel
    ]


async def list_guild(request: RestRequest) -> Answer:
    guild, world = request.guild, request.world
    mine = [one for one in world.webhooks.values() if one.channel.guild is guild]
    for webhook in mine:
        request.need(webhook.channel, Permission.MANAGE_WEBHOOKS)
    return 200, [_shown(request, one) for one in mine]


def _shown(request: RestRequest, webhook: Webhook) -> JsonObject:
    """The token is given to the application that made the webhook, to no other."""
    payload = wire.webhook_payload(webhook)
    if webhook.application_id != request.world.bot.id:
        del payload["token"]
    return payload


async def get(request: RestRequest) -> Answer:
    webhook = _webhook(request)
    if "token" not in request.path:
        request.need(webhook.channel, Permission.MANAGE_WEBHOOKS)
    return 200, _shown(request, webhook)


async def delete(request: RestRequest) -> Answer:
    webhook = _webhook(request)
    if "token" not in request.path:
        request.need(webhook.channel, Permission.MANAGE_WEBHOOKS)
    request.world.delete_webhook(webhook)
    return NO_CONTENT


def _webhook(request: RestRequest) -> Webhook:
    webhook = request.world.webhooks.get(request.id("webhook"))
    if webhook is None:
        raise refusals.unknown_webhook()
    token = request.path.get("token")
    if token is not None and token != webhook.token:
        raise refusals.invalid_webhook_token()
    return webhook


# --- speaking


async def execute(request: RestRequest) -> Answer:
    """The message is returned only to those who `wait` for it."""
    if _is_interaction(request):
        return await rest_interactions.followup(request)
    webhook, body = _webhook(request), request.body
    message_rules.check_message(body, has_files=bool(request.call.files))
    check_files(request)
    name = body.get("username") or webhook.name
    check_name(name, "username")
    message = request.world.post(
        _place(request, webhook),
        User(id=webhook.id, name=name, is_bot=True),
        body.get("content") or "",
        allowed_mentions=body.get("allowed_mentions"),
        files=request.call.files,
        embeds=body.get("embeds") or [],
        components=body.get("components") or [],
        flags=MessageFlag(body.get("flags") or 0),
        webhook_id=webhook.id,
        application_id=webhook.application_id,
        author_avatar=body.get("avatar_url"),
    )
    if request.call.query.get("wait", "").lower() not in ("1", "true"):
        return NO_CONTENT
    return 200, _message_payload(request, message)


def _message_payload(request: RestRequest, message: Message) -> JsonObject:
    return wire.message_payload(message, request.world.bot, reads_content=True)


def _is_interaction(request: RestRequest) -> bool:
    return request.id("webhook") == request.world.bot.id


def _place(request: RestRequest, webhook: Webhook) -> Channel:
    """The webhook's channel, or the thread in it that `thread_id` names."""
    thread_id = request.call.query.get("thread_id")
    if thread_id is None:
        if webhook.channel.kind is ChannelKind.FORUM:
            raise refusals.Refusal(
                400,
                220001,
                "Webhooks posted to forum channels must have a thread_name or thread_id",
            )
        return webhook.channel
    thread = request.world.channels.get(int(thread_id))
    if thread is None or thread.parent is not webhook.channel:
        raise refusals.unknown_channel()
    return thread


def _message(request: RestRequest) -> Message:
    webhook = _webhook(request)
    message = _place(request, webhook).messages.get(request.id("message"))
    if message is None or message.webhook_id != webhook.id:
        raise refusals.unknown_message()
    return message


async def get_message(request: RestRequest) -> Answer:
    if _is_interaction(request):
        return await rest_interactions.get_message(request)
    return 200, _message_payload(request, _message(request))


async def edit_message(request: RestRequest) -> Answer:
    if _is_interaction(request):
        return await rest_interactions.edit_message(request)
    message = _message(request)
    check_edit(request, message)
    request.world.revise(message, request.body, files=request.call.files)
    return 200, _message_payload(request, message)


async def delete_message(request: RestRequest) -> Answer:
    if _is_interaction(request):
        return await rest_interactions.delete_message(request)
    message = _message(request)
    request.world.erase([message], message.channel)
    return NO_CONTENT


WITH_TOKEN = "/webhooks/{webhook}/{token}"
ONE_MESSAGE = WITH_TOKEN + "/messages/{message}"
ROUTES = (
    route("POST", "/channels/{channel}/webhooks", create),
    route("GET", "/channels/{channel}/webhooks", list_channel),
    route("GET", "/guilds/{guild}/webhooks", list_guild),
    route("GET", "/webhooks/{webhook}", get),
    route("DELETE", "/webhooks/{webhook}", delete),
    route("GET", WITH_TOKEN, get, token_in_path=True),
    route("DELETE", WITH_TOKEN, delete, token_in_path=True),
    route("POST", WITH_TOKEN, execute, token_in_path=True),
    route("GET", ONE_MESSAGE, get_message, token_in_path=True),
    route("PATCH", ONE_MESSAGE, edit_message, token_in_path=True),
    route("DELETE", ONE_MESSAGE, delete_message, token_in_path=True),
)
