"""Ids as distinct types: a person's id in a channel's place would be a privacy bug."""

from typing import NewType

UserId = NewType("UserId", int)
GuildId = NewType("GuildId", int)
ChannelId = NewType("ChannelId", int)
MessageId = NewType("MessageId", int)
RoleId = NewType("RoleId", int)

OriginId = NewType("OriginId", int)
LineageId = NewType("LineageId", int)
PersonaId = NewType("PersonaId", int)
EntryId = NewType("EntryId", int)
TurnId = NewType("TurnId", int)
MemoryId = NewType("MemoryId", int)
LedgerId = NewType("LedgerId", int)
RunId = NewType("RunId", str)

GLOBAL_LINEAGE = LineageId(0)
"""Reserved for global memories: read by every persona, never written by a model."""
