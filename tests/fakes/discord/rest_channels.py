"""REST: channels, typing, direct messages, threads, guilds and the people in them."""

from __future__ import annotations

from tests.fakes.discord import message_rules, refusals, wire
from tests.fakes.discord.gateway import Intent
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.records import Channel, ChannelKind, MessageFlag, User
from tests.fakes.discord.rest_messages import check_files
from tests.fakes.discord.routing import NO_CONTENT, Answer, RestRequest, route

SESSION_STARTS = {"total": 1000, "remaining": 1000, "reset_after": 1000, "max_concurrency": 16}


# --- the application itself


async def myself(request: RestRequest) -> Answer:
    return 200, wire.user_payload(request.world.bot) | {"verified": True, "mfa_enabled": False}


async def application(request: RestRequest) -> Answer:
    world = request.world
    return 200, {
        "id": str(world.bot.id),
        "name": world.bot.name,
        "icon": None,
        "description": "",
        "summary": "",
        "bot_public": True,
        "bot_require_code_grant": False,
        "owner": wire.user_payload(world.owner),
        "team": None,
        "verify_key": "0" * 64,
        "flags": world.gateway.application_flags,
        "approximate_guild_count": len(world.guilds),
    }


async def gateway_bot(request: RestRequest) -> Answer:
    world = request.world
    return 200, {
        "url": world.gateway.url,
        "shards": world.recommended_shards,
        "session_start_limit": SESSION_STARTS,
    }


# --- channels


async def get_channel(request: RestRequest) -> Answer:
    channel = request.channel
    if channel.thread:
        return 200, wire.thread_payload(channel, request.world.bot)
    return 200, wire.channel_payload(channel)


async def typing(request: RestRequest) -> Answer:
    channel = request.channel
    request.need(
        channel,
        Permission.SEND_MESSAGES_IN_THREADS if channel.thread else Permission.SEND_MESSAGES,
    )
    request.world.bot_typed_in.append(channel)
    return NO_CONTENT


async def open_direct(request: RestRequest) -> Answer:
    user = request.world.users.get(int(request.body["recipient_id"]))
    if user is None:
        raise refusals.unknown_user()
    return 200, wire.channel_payload(request.world.direct(user))


async def change_channel(request: RestRequest) -> Answer:
    """Name and topic of a channel; name and state of a thread."""
    channel, body = request.channel, request.body
    thread = channel.thread
    owns = thread is not None and thread.owner_id == request.world.bot.id
    if not owns:
        request.need(channel, Permission.MANAGE_THREADS if thread else Permission.MANAGE_CHANNELS)
    channel.name = body.get("name", channel.name)
    channel.topic = body.get("topic", channel.topic)
    if thread:
        thread.archived = body.get("archived", thread.archived)
        thread.locked = body.get("locked", thread.locked)
    request.world.channel_event("THREAD_UPDATE" if thread else "CHANNEL_UPDATE", channel)
    return 200, wire.channel_payload(channel)


# --- threads


async def start_thread(request: RestRequest) -> Answer:
    """A thread without a message, or a post in a forum with its first one."""
    parent, body, world = request.channel, request.body, request.world
    if parent.kind is ChannelKind.FORUM:
        return await _start_post(request)
    private = body.get("type", 12) == ChannelKind.PRIVATE_THREAD
    request.need(
        parent,
        Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS,
    )
    thread = world.thread(parent, body["name"], owner=world.bot, private=private)
    return 201, wire.thread_payload(thread, world.bot)


async def _start_post(request: RestRequest) -> Answer:
    forum, world = request.channel, request.world
    request.need(forum, Permission.SEND_MESSAGES)
    message = request.body.get("message") or {}
    message_rules.check_message(message, has_files=bool(request.call.files))
    check_files(request)
    post = world.thread(forum, request.body["name"], owner=world.bot)
    first = world.post(
        post,
        world.bot,
        message.get("content") or "",
        allowed_mentions=message.get("allowed_mentions"),
        files=request.call.files,
        embeds=message.get("embeds") or [],
        flags=MessageFlag(message.get("flags") or 0),
    )
    shown = wire.message_payload(first, world.bot, reads_content=True)
    return 201, wire.thread_payload(post, world.bot) | {"message": shown}


async def start_thread_from(request: RestRequest) -> Answer:
    message, world = request.message, request.world
    request.need(message.channel, Permission.CREATE_PUBLIC_THREADS)
    if message.id in world.channels:
        raise refusals.Refusal(400, 160004, "A thread has already been created for this message")
    message.flags |= MessageFlag.HAS_THREAD
    thread = world.thread(message.channel, request.body["name"], owner=world.bot, starter=message)
    return 201, wire.thread_payload(thread, world.bot)


async def join_thread(request: RestRequest) -> Answer:
    request.world.join_thread(_open_thread(request), request.world.bot)
    return NO_CONTENT


async def leave_thread(request: RestRequest) -> Answer:
    request.world.leave_thread(_open_thread(request), request.world.bot)
    return NO_CONTENT


async def add_to_thread(request: RestRequest) -> Answer:
    request.world.join_thread(_open_thread(request), _user(request))
    return NO_CONTENT


async def remove_from_thread(request: RestRequest) -> Answer:
    thread = _open_thread(request)
    request.need(thread, Permission.MANAGE_THREADS)
    request.world.leave_thread(thread, _user(request))
    return NO_CONTENT


def _open_thread(request: RestRequest) -> Channel:
    channel = request.channel
    if channel.thread is None:
        raise refusals.Refusal(400, 50024, "Cannot execute action on this channel type")
    if channel.thread.archived:
        raise refusals.Refusal(400, 50083, "Thread is archived")
    return channel


def _user(request: RestRequest) -> User:
    user = request.world.users.get(request.id("user"))
    if user is None:
        raise refusals.unknown_user()
    return user


async def thread_member(request: RestRequest) -> Answer:
    thread, user_id = request.channel, request.id("user")
    if thread.thread is None or user_id not in thread.thread.member_ids:
        raise refusals.unknown_member()
    return 200, wire.thread_member_payload(thread, user_id)


async def active_threads(request: RestRequest) -> Answer:
    world = request.world
    threads = [
        one
        for one in world.channels.values()
        if one.guild is request.guild
        and one.thread
        and not one.thread.archived
        and world.can(world.bot, one, Permission.VIEW_CHANNEL)
    ]
    members = [
        wire.thread_member_payload(one, world.bot.id)
        for one in threads
        if one.thread and world.bot.id in one.thread.member_ids
    ]
    return 200, {
        "threads": [wire.thread_payload(one, world.bot) for one in threads],
        "members": members,
        "has_more": False,
    }


# --- guilds and people


async def my_guilds(request: RestRequest) -> Answer:
    mine = [one for one in request.world.guilds.values() if request.world.bot.id in one.members]
    return 200, [wire.guild_summary(guild) for guild in mine]


async def get_guild(request: RestRequest) -> Answer:
    return 200, wire.guild_summary(request.guild)


async def guild_channels(request: RestRequest) -> Answer:
    channels = [
        one
        for one in request.world.channels.values()
        if one.guild is request.guild and not one.thread
    ]
    return 200, [wire.channel_payload(channel) for channel in channels]


async def guild_roles(request: RestRequest) -> Answer:
    return 200, [wire.role_payload(role) for role in request.guild.roles.values()]


async def guild_member(request: RestRequest) -> Answer:
    member = request.guild.members.get(request.id("user"))
    if member is None:
        known = request.id("user") in request.world.users
        raise refusals.unknown_member() if known else refusals.unknown_user()
    return 200, wire.member_payload(member)


async def guild_members(request: RestRequest) -> Answer:
    """Listing people needs the privileged members intent."""
    if Intent.GUILD_MEMBERS not in request.world.gateway.privileged_intents:
        raise refusals.missing_access()
    limit, after = (int(request.call.query.get(key, default)) for key, default in MEMBER_PAGE)
    members = sorted(request.guild.members.values(), key=lambda one: one.user.id)
    page = [one for one in members if one.user.id > after][:limit]
    return 200, [wire.member_payload(member) for member in page]


async def search_members(request: RestRequest) -> Answer:
    prefix = request.call.query["query"].casefold()
    found = [
        one
        for one in request.guild.members.values()
        if (one.nick or one.user.name).casefold().startswith(prefix)
    ]
    limit = int(request.call.query.get("limit", 1))
    return 200, [wire.member_payload(member) for member in found[:limit]]


async def get_user(request: RestRequest) -> Answer:
    return 200, wire.user_payload(_user(request))


MEMBER_PAGE = (("limit", 1), ("after", 0))
THREAD_MEMBERS = "/channels/{channel}/thread-members"
ROUTES = (
    route("GET", "/users/@me", myself),
    route("GET", "/users/@me/guilds", my_guilds),
    route("POST", "/users/@me/channels", open_direct),
    route("GET", "/users/{user}", get_user),
    route("GET", "/oauth2/applications/@me", application),
    route("GET", "/applications/@me", application),
    route("GET", "/gateway/bot", gateway_bot),
    route("GET", "/channels/{channel}", get_channel),
    route("PATCH", "/channels/{channel}", change_channel),
    route("POST", "/channels/{channel}/typing", typing),
    route("POST", "/channels/{channel}/threads", start_thread),
    route("POST", "/channels/{channel}/messages/{message}/threads", start_thread_from),
    route("PUT", THREAD_MEMBERS + "/@me", join_thread),
    route("DELETE", THREAD_MEMBERS + "/@me", leave_thread),
    route("PUT", THREAD_MEMBERS + "/{user}", add_to_thread),
    route("DELETE", THREAD_MEMBERS + "/{user}", remove_from_thread),
    route("GET", THREAD_MEMBERS + "/{user}", thread_member),
    route("GET", "/guilds/{guild}", get_guild),
    route("GET", "/guilds/{guild}/channels", guild_channels),
    route("GET", "/guilds/{guild}/roles", guild_roles),
    route("GET", "/guilds/{guild}/threads/active", active_threads),
    route("GET", "/guilds/{guild}/members", guild_members),
    route("GET", "/guilds/{guild}/members/search", search_members),
    route("GET", "/guilds/{guild}/members/{user}", guild_member),
)
