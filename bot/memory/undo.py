"""Takes back what the model changed in memory, on the word of whoever has a right to that."""

from dataclasses import dataclass
from typing import assert_never

from bot.identifiers import GuildId, MemoryId, UserId
from bot.memory import long_term_rows as rows
from bot.memory.changes import Change, ChangeKind, TurnKey, changes_of, drop_changes
from bot.memory.checks import Checks
from bot.memory.content import content_hash
from bot.memory.listening import Actor, Listening, is_about
from bot.memory.long_term_rows import Memory, Scope
from bot.memory.refusals import MemoryRefused
from bot.storage.statements import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """One change that was taken back. `text`: what is no longer kept, or is kept again."""

    kind: ChangeKind
    memory: MemoryId
    text: str
    scope: Scope
    server: GuildId
    subject: UserId | None


async def undo_turn(
    tx: Transaction, turn: TurnKey, actor: Actor, listening: Listening, checks: Checks
) -> tuple[Undone, ...]:
    """Undo every change of a turn, the latest first. Raises MemoryRefused."""
    changes = await changes_of(tx, turn)
    if not changes:
        raise MemoryRefused("undo_nothing")
    undone: list[Undone] = []
    for change in changes:
        current = await rows.read_one(tx, change.memory)
        about = current or change.former
        if about is None:
            raise MemoryRefused("undo_changed")
        _check_rights(change, about, actor, listening)
        match change.kind:
            case "saved":
                undone.append(await _unsave(tx, turn, current))
            case "updated":
                heard = None if current is None else listening.as_heard(current).former
                if not heard or current is None or heard[:1] != current.former[:1]:
                    raise MemoryRefused("undo_changed")
                undone.append(await _revert(tx, turn, current, actor, checks))
            case "forgotten":
                undone.append(await _recall(tx, change.former, current, actor, checks))
            case _:
                assert_never(change.kind)
    await drop_changes(tx, turn)
    return tuple(undone)


def _check_rights(change: Change, memory: Memory, actor: Actor, listening: Listening) -> None:
    """Whoever made the change, whom it is about, and for what is the server's its managers."""
    if memory.server != listening.server or not listening.hears(memory):
        raise MemoryRefused("undo_nothing")
    manages = memory.scope is Scope.SERVER and actor.is_manager
    if not (actor.user == change.user or is_about(memory, actor.user) or manages):
        raise MemoryRefused("not_yours")


async def _unsave(tx: Transaction, turn: TurnKey, current: Memory | None) -> Undone:
    """What the turn's message said goes; where others said the same, it stays their word."""
    if current is None or all(s.message_id != turn.message for s in current.sources):
        raise MemoryRefused("undo_changed")
    await rows.remove_message(tx, current, turn.message)
    return _undone("saved", current, current.content)


async def _revert(
    tx: Transaction, turn: TurnKey, current: Memory | None, actor: Actor, checks: Checks
) -> Undone:
    """The former text comes back, if the one that was written is still the word of that turn."""
    if current is None or {s.message_id for s in current.sources} != {turn.message}:
        raise MemoryRefused("undo_changed")
    former = next(iter(current.former), None)
    if former is None or not former.sources:
        raise MemoryRefused("undo_changed")
    await _check_now(tx, current, former.content, actor, checks)
    others = await rows.read_partition(tx, current.restated(former.content, former.sources[0]))
    if any(content_hash(m.content) == content_hash(former.content) for m in others):
        raise MemoryRefused("undo_changed")
    await rows.revert(tx, current, former)
    return _undone("updated", current, former.content)


async def _recall(
    tx: Transaction,
    former: Memory | None,
    current: Memory | None,
    actor: Actor,
    checks: Checks,
) -> Undone:
    """The memory comes back as it was; where it is known again, with the sources it had."""
    if former is None or (current is not None and current.content != former.content):
        raise MemoryRefused("undo_changed")
    await _check_now(tx, former, former.content, actor, checks)
    partition = await rows.read_partition(tx, former.restated(former.content, former.sources[0]))
    wanted = content_hash(former.content)
    same = next((m for m in partition if content_hash(m.content) == wanted), None)
    if same is None:
        checks.limit(partition)
        await rows.bring_back(tx, former)
    else:
        for source in former.sources:
            await rows.add_source(tx, same.id, source)
    return _undone("forgotten", former, former.content)


async def _check_now(
    tx: Transaction, memory: Memory, content: str, actor: Actor, checks: Checks
) -> None:
    """Nothing comes back about people who have become private since."""
    await checks.privacy(tx, content, memory.scope, memory.subject, actor, memory.server)


def _undone(kind: ChangeKind, memory: Memory, text: str) -> Undone:
    return Undone(
        kind=kind,
        memory=memory.id,
        text=text,
        scope=memory.scope,
        server=memory.server,
        subject=memory.subject,
    )
