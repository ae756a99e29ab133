"""The project's own loopback Discord and loopback model server.

Real discord.py and openai clients talk to them over real sockets; `tests/fakes_selftest` shows how.
"""

from tests.fakes.discord.calls import Call, UploadedFile
from tests.fakes.discord.faults import Bucket, Fault
from tests.fakes.discord.gateway import Intent
from tests.fakes.discord.interactions import Interaction, ResponseKind
from tests.fakes.discord.permissions import DEFAULT_BOT, DEFAULT_EVERYONE, EVERYTHING, Permission
from tests.fakes.discord.records import (
    Channel,
    ChannelKind,
    Guild,
    Member,
    Message,
    MessageFlag,
    MessageKind,
    Pings,
    Role,
    User,
    Webhook,
)
from tests.fakes.discord.resolving import NotPossible
from tests.fakes.discord.server import LoopbackDiscord
from tests.fakes.model.embedding import embed
from tests.fakes.model.replies import (
    BadJson,
    ContextTooLong,
    CorruptEvent,
    Cut,
    Disconnect,
    ErrorEvent,
    Hang,
    Html,
    HttpError,
    Json,
    Reply,
    Reset,
    Stall,
    Text,
    ToolCalls,
    Vectors,
)
from tests.fakes.model.requests import ModelRequest
from tests.fakes.model.server import LoopbackModel

__all__ = [
    "DEFAULT_BOT",
    "DEFAULT_EVERYONE",
    "EVERYTHING",
    "BadJson",
    "Bucket",
    "Call",
    "Channel",
    "ChannelKind",
    "ContextTooLong",
    "CorruptEvent",
    "Cut",
    "Disconnect",
    "ErrorEvent",
    "Fault",
    "Guild",
    "Hang",
    "Html",
    "HttpError",
    "Intent",
    "Interaction",
    "Json",
    "LoopbackDiscord",
    "LoopbackModel",
    "Member",
    "Message",
    "MessageFlag",
    "MessageKind",
    "ModelRequest",
    "NotPossible",
    "Permission",
    "Pings",
    "Reply",
    "Reset",
    "ResponseKind",
    "Role",
    "Stall",
    "Text",
    "ToolCalls",
    "UploadedFile",
    "User",
    "Vectors",
    "Webhook",
    "embed",
]
