"""Gateway v10: identify, heartbeat, dispatch by intents and permissions, resume, and its faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import zlib
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING

from aiohttp import ClientError, WSMsgType, web

from tests.fakes.connections import reset
from tests.fakes.discord import wire
from tests.fakes.discord.permissions import Permission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.fakes.discord.events import Event
    from tests.fakes.discord.records import Channel, Guild, JsonObject, Member
    from tests.fakes.discord.world import World


class Op(IntEnum):
    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    RESUME = 6
    RECONNECT = 7
    REQUEST_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class Intent(IntFlag):
    NONE = 0
    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_WEBHOOKS = 1 << 5
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_MESSAGE_REACTIONS = 1 << 10
    GUILD_MESSAGE_TYPING = 1 << 11
    DIRECT_MESSAGES = 1 << 12
    DIRECT_MESSAGE_REACTIONS = 1 << 13
    DIRECT_MESSAGE_TYPING = 1 << 14
    MESSAGE_CONTENT = 1 << 15


PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
# The application's flags that say which privileged intents it has (the limited kind, unreviewed).
APPLICATION_FLAGS = {
    Intent.GUILD_PRESENCES: 1 << 13,
    Intent.GUILD_MEMBERS: 1 << 15,
    Intent.MESSAGE_CONTENT: 1 << 19,
}
# The intents an event needs: in a guild, in a direct message. Absent: everybody is told.
NEEDED: dict[str, tuple[Intent, Intent]] = {
    "MESSAGE": (Intent.GUILD_MESSAGES, Intent.DIRECT_MESSAGES),
    "MESSAGE_REACTION": (Intent.GUILD_MESSAGE_REACTIONS, Intent.DIRECT_MESSAGE_REACTIONS),
    "TYPING": (Intent.GUILD_MESSAGE_TYPING, Intent.DIRECT_MESSAGE_TYPING),
    "GUILD_MEMBER": (Intent.GUILD_MEMBERS, Intent.NONE),
    "WEBHOOKS": (Intent.GUILD_WEBHOOKS, Intent.NONE),
    "GUILD": (Intent.GUILDS, Intent.NONE),
    "CHANNEL": (Intent.GUILDS, Intent.NONE),
    "THREAD": (Intent.GUILDS, Intent.NONE),
}
# Told only to those who can view the channel. Channels themselves are announced to every bot.
NEEDS_VIEW = ("MESSAGE", "TYPING", "THREAD")
# Told also where the bot is no member: the application was installed by the person.
TOLD_TO_STRANGERS = ("INTERACTION_CREATE",)

AUTHENTICATION_FAILED = 4004
DISALLOWED_INTENTS = 4014
RESUMABLE_CLOSE = 4000


class Connection:
    """One websocket. Payloads leave in the order in which they were given."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self._socket = socket
        self._transport = request.transport
        self._compressor = (
            zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        )
        self._outgoing: asyncio.Queue[JsonObject] = asyncio.Queue()

    def send(self, payload: JsonObject) -> None:
        self._outgoing.put_nowait(payload)

    async def pump(self) -> None:
        """Write what is given until the socket closes."""
        with contextlib.suppress(ConnectionError, ClientError):
            while not self._socket.closed:
                await self._write(await self._outgoing.get())

    async def _write(self, payload: JsonObject) -> None:
        text = json.dumps(payload)
        if self._compressor is None:
            await self._socket.send_str(text)
            return
        packed = self._compressor.compress(text.encode())
        await self._socket.send_bytes(packed + self._compressor.flush(zlib.Z_SYNC_FLUSH))

    async def close(self, code: int) -> None:
        await self._socket.close(code=code)

    def abort(self) -> None:
        """Reset the TCP connection without a close frame."""
        reset(self._transport)


class Session:
    """What survives a lost connection: the numbered events, kept for RESUME."""

    def __init__(self, connection: Connection, identify: JsonObject) -> None:
        self.id = secrets.token_hex(8)
        self.connection: Connection | None = connection
        self.intents = Intent(identify["intents"])
        self.shard_id, self.shard_count = identify.get("shard", (0, 1))
        self._events: list[JsonObject] = []

    def dispatch(self, name: str, data: JsonObject) -> None:
        payload = {"op": Op.DISPATCH, "t": name, "s": len(self._events) + 1, "d": data}
        self._events.append(payload)
        if self.connection:
            self.connection.send(payload)

    def resume(self, connection: Connection, after: int) -> None:
        self.connection = connection
        for payload in self._events[after:]:
            connection.send(payload)
        self.dispatch("RESUMED", {})

    def covers(self, guild: Guild | None) -> bool:
        """Whether this shard is told of a guild; direct messages go to shard 0."""
        return ((guild.id >> 22) % self.shard_count if guild else 0) == self.shard_id


class Gateway:
    """Every session of the bot. `identifies` and `resumes` count what clients asked for."""

    def __init__(
        self,
        world: World,
        *,
        token: str,
        privileged_intents: Intent,
        heartbeat_ms: int,
        on_change: Callable[[], None],
    ) -> None:
        self._world = world
        self._token = token
        self._heartbeat_ms = heartbeat_ms
        self._on_change = on_change
        self._connections: set[Connection] = set()
        self.privileged_intents = privileged_intents
        self.acknowledges_heartbeats = True
        self.sessions: dict[str, Session] = {}
        self.received: list[JsonObject] = []
        self.url = ""

    # --- what a test may ask and do

    @property
    def heartbeats(self) -> int:
        return self._count(Op.HEARTBEAT)

    @property
    def identifies(self) -> int:
        return self._count(Op.IDENTIFY)

    @property
    def resumes(self) -> int:
        return self._count(Op.RESUME)

    def _count(self, op: int) -> int:
        return sum(payload["op"] == op for payload in self.received)

    @property
    def is_connected(self) -> bool:
        return any(session.connection for session in self.sessions.values())

    async def drop(self, code: int = RESUMABLE_CLOSE) -> None:
        """Close every connection with a code: 4000 lets the client resume."""
        for connection in list(self._connections):
            await connection.close(code)

    def abort(self) -> None:
        """Reset every connection without a close frame."""
        for connection in self._connections:
            connection.abort()

    def op7(self) -> None:
        """Ask every client to reconnect and resume."""
        for connection in self._connections:
            connection.send({"op": Op.RECONNECT, "d": None})

    def op9(self, *, resumable: bool) -> None:
        """Declare the sessions invalid; what was missed is lost unless they are resumable."""
        if not resumable:
            self.sessions.clear()
        for connection in self._connections:
            connection.send({"op": Op.INVALID_SESSION, "d": resumable})

    # --- dispatch

    def dispatch(self, event: Event) -> None:
        """Send an event to each session whose intents, shard and permissions let it through."""
        for session in self.sessions.values():
            if self._is_told(session, event):
                session.dispatch(event.name, self._data(session, event))
        self._on_change()

    def _is_told(self, session: Session, event: Event) -> bool:
        is_member = event.guild is None or self._world.bot.id in event.guild.members
        if not is_member and event.name not in TOLD_TO_STRANGERS:
            return False
        about_bot = event.user_id == self._world.bot.id and event.name == "GUILD_MEMBER_UPDATE"
        return session.covers(event.guild) and (
            about_bot or (self._intended(session, event) and self._can_view(event))
        )

    def _intended(self, session: Session, event: Event) -> bool:
        family = _family(event.name, NEEDED)
        if family is None:
            return True
        in_guild, in_direct = NEEDED[family]
        return (in_direct if _is_direct(event) else in_guild) in session.intents

    def _can_view(self, event: Event) -> bool:
        if event.channel is None or _is_direct(event) or _family(event.name, NEEDS_VIEW) is None:
            return True
        return self._world.can(self._world.bot, event.channel, Permission.VIEW_CHANNEL)

    def _data(self, session: Session, event: Event) -> JsonObject:
        if event.message:
            reads = Intent.MESSAGE_CONTENT in session.intents
            return wire.message_event(event.message, self._world.bot, reads_content=reads)
        if event.name == "GUILD_CREATE" and event.guild:
            return self._guild_create(session, event.guild)
        return event.data or {}

    def _guild_create(self, session: Session, guild: Guild) -> JsonObject:
        """All channels of a guild; all its members only with both intents that list people."""
        listed = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES
        everybody = listed in session.intents
        members = guild.members.values() if everybody else [guild.members[self._world.bot.id]]
        return wire.guild_payload(guild, self._channels_of(guild), members, self._world.bot)

    def _channels_of(self, guild: Guild) -> list[Channel]:
        return [one for one in self._world.channels.values() if one.guild is guild]

    # --- the websocket

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        connection = Connection(socket, request)
        self._connections.add(connection)
        pump = asyncio.create_task(connection.pump())
        connection.send({"op": Op.HELLO, "d": {"heartbeat_interval": self._heartbeat_ms}})
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._receive(connection, json.loads(message.data))
        finally:
            pump.cancel()
            self._forget(connection)
        return socket

    def _forget(self, connection: Connection) -> None:
        self._connections.discard(connection)
        for session in self.sessions.values():
            if session.connection is connection:
                session.connection = None
        self._on_change()

    async def _receive(self, connection: Connection, payload: JsonObject) -> None:
        self.received.append(payload)
        match payload["op"]:
            case Op.HEARTBEAT if self.acknowledges_heartbeats:
                connection.send({"op": Op.HEARTBEAT_ACK})
            case Op.IDENTIFY:
                await self._identify(connection, payload["d"])
            case Op.RESUME:
                self._resume(connection, payload["d"])
            case Op.REQUEST_MEMBERS:
                self._list_members(connection, payload["d"])
            case _:
                pass
        self._on_change()

    async def _identify(self, connection: Connection, identify: JsonObject) -> None:
        if identify["token"] != self._token:
            await connection.close(AUTHENTICATION_FAILED)
            return
        if Intent(identify["intents"]) & PRIVILEGED & ~self.privileged_intents:
            await connection.close(DISALLOWED_INTENTS)
            return
        session = Session(connection, identify)
        guilds = [
            guild
            for guild in self._world.guilds.values()
            if self._world.bot.id in guild.members and session.covers(guild)
        ]
        session.dispatch("READY", self._ready(session, guilds))
        for guild in guilds if Intent.GUILDS in session.intents else ():
            session.dispatch("GUILD_CREATE", self._guild_create(session, guild))
        self.sessions[session.id] = session

    def _ready(self, session: Session, guilds: list[Guild]) -> JsonObject:
        return {
            "v": 10,
            "user": wire.user_payload(self._world.bot),
            "guilds": [{"id": str(guild.id), "unavailable": True} for guild in guilds],
            "session_id": session.id,
            "resume_gateway_url": self.url,
            "shard": [session.shard_id, session.shard_count],
            "application": {"id": str(self._world.bot.id), "flags": self.application_flags},
        }

    @property
    def application_flags(self) -> int:
        """The flags by which an application sees which privileged intents it was given."""
        return sum(
            flag for intent, flag in APPLICATION_FLAGS.items() if intent in self.privileged_intents
        )

    def _resume(self, connection: Connection, resume: JsonObject) -> None:
        session = self.sessions.get(resume["session_id"])
        if session is None or resume["token"] != self._token:
            connection.send({"op": Op.INVALID_SESSION, "d": False})
            return
        session.resume(connection, after=resume["seq"])

    def _list_members(self, connection: Connection, wanted: JsonObject) -> None:
        """GUILD_MEMBERS_CHUNK: listing everybody needs the members intent, asking by id none."""
        session = next(
            (one for one in self.sessions.values() if one.connection is connection), None
        )
        guild = self._world.guilds.get(int(wanted["guild_id"]))
        if session is None or guild is None:
            return
        members, missing = _chosen_members(guild, wanted)
        if "user_ids" not in wanted and Intent.GUILD_MEMBERS not in session.intents:
            members = []
        data = {
            "guild_id": str(guild.id),
            "members": [wire.member_payload(member) for member in members],
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": missing,
            "nonce": wanted.get("nonce"),
        }
        session.dispatch("GUILD_MEMBERS_CHUNK", data)


def _family(name: str, families: Iterable[str]) -> str | None:
    """The longest known beginning of an event's name: MESSAGE_REACTION before MESSAGE."""
    known = sorted(families, key=len, reverse=True)
    return next((family for family in known if name.startswith(family)), None)


def _is_direct(event: Event) -> bool:
    """Discord counts an ephemeral answer as a direct message, wherever it stands."""
    return event.guild is None or (event.message is not None and event.message.is_ephemeral)


def _chosen_members(guild: Guild, wanted: JsonObject) -> tuple[list[Member], list[str]]:
    if "user_ids" not in wanted:
        prefix = wanted.get("query", "").casefold()
        found = [one for one in guild.members.values() if one.user.name.startswith(prefix)]
        return found[: wanted.get("limit") or None], []
    ids = wanted["user_ids"] if isinstance(wanted["user_ids"], list) else [wanted["user_ids"]]
    found = [guild.members[int(one)] for one in ids if int(one) in guild.members]
    return found, [str(one) for one in ids if int(one) not in guild.members]
