"""REST: the answers to interactions, and the messages that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.discord import message_rules, refusals, wire
from tests.fakes.discord.command_rules import CHAT, check_choices
from tests.fakes.discord.interactions import Interaction, InteractionKind, ResponseKind
from tests.fakes.discord.records import Message, MessageFlag, MessageKind
from tests.fakes.discord.rest_messages import check_edit, check_files
from tests.fakes.discord.routing import NO_CONTENT, Answer, RestRequest, route

if TYPE_CHECKING:
    from tests.fakes.discord.records import JsonObject

USER_INSTALLED_FOLLOWUPS = 5
MODAL_TITLE_LIMIT = 45
MODAL_ROWS_LIMIT = 5
MESSAGE_RESPONSES = (ResponseKind.MESSAGE, ResponseKind.DEFERRED_MESSAGE)
FITTING = {
    InteractionKind.COMMAND: {*MESSAGE_RESPONSES, ResponseKind.MODAL},
    InteractionKind.COMPONENT: set(ResponseKind) - {ResponseKind.AUTOCOMPLETE},
    InteractionKind.AUTOCOMPLETE: {ResponseKind.AUTOCOMPLETE},
    InteractionKind.MODAL_SUBMIT: {
        *MESSAGE_RESPONSES,
        ResponseKind.DEFERRED_UPDATE,
        ResponseKind.UPDATE,
    },
}


async def callback(request: RestRequest) -> Answer:
    """The first answer: in time, only once, and of a kind that fits."""
    interaction = request.world.interactions.get(request.path["token"])
    if interaction is None or interaction.id != request.id("interaction"):
        raise refusals.unknown_interaction()
    if interaction.acknowledged:
        raise refusals.already_acknowledged()
    if interaction.is_too_old_to_answer:
        raise refusals.unknown_interaction()
    kind = ResponseKind(request.body["type"])
    if kind not in FITTING[interaction.kind]:
        raise refusals.invalid_form("type", "BASE_TYPE_CHOICES", f"{kind.name} does not fit here")
    data: JsonObject = request.body.get("data") or {}
    _respond(request, interaction, kind, data)
    interaction.response_kind, interaction.response = kind, data
    if request.call.query.get("with_response", "").lower() not in ("1", "true"):
        return NO_CONTENT
    return 200, _callback_payload(request, interaction, kind)


def _respond(
    request: RestRequest, interaction: Interaction, kind: ResponseKind, data: JsonObject
) -> None:
    match kind:
        case ResponseKind.MESSAGE:
            message_rules.check_message(data, has_files=bool(request.call.files))
            interaction.original = _send(request, interaction, data)
        case ResponseKind.DEFERRED_MESSAGE:
            loading = MessageFlag(data.get("flags") or 0) | MessageFlag.LOADING
            interaction.original = _send(request, interaction, {"flags": loading})
        case ResponseKind.DEFERRED_UPDATE:
            interaction.original = _source(interaction)
        case ResponseKind.UPDATE:
            message_rules.check_parts(data)
            interaction.original = _source(interaction)
            request.world.revise(interaction.original, data, files=request.call.files)
        case ResponseKind.AUTOCOMPLETE:
            check_choices(data.get("choices") or [], "data.choices")
        case ResponseKind.MODAL:
            _check_modal(data)


def _source(interaction: Interaction) -> Message:
    if interaction.source is None:
        raise refusals.invalid_form("type", "BASE_TYPE_CHOICES", "there is no message to update")
    return interaction.source


def _check_modal(data: JsonObject) -> None:
    if not 1 <= len(data.get("title") or "") <= MODAL_TITLE_LIMIT:
        raise message_rules.too_long("data.title", MODAL_TITLE_LIMIT)
    if not 1 <= len(data.get("components") or []) <= MODAL_ROWS_LIMIT:
        raise message_rules.too_long("data.components", MODAL_ROWS_LIMIT)
    message_rules.check_components(data["components"], is_v2=True)


def _callback_payload(
    request: RestRequest, interaction: Interaction, kind: ResponseKind
) -> JsonObject:
    payload: JsonObject = {
        "interaction": {
            "id": str(interaction.id),
            "type": int(interaction.kind),
            "response_message_loading": bool(
                interaction.original and interaction.original.is_loading
            ),
        },
    }
    if interaction.original:
        shown = _shown(request, interaction.original)
        payload["interaction"]["response_message_id"] = shown["id"]
        payload["resource"] = {"type": int(kind), "message": shown}
    return payload


def _send(request: RestRequest, interaction: Interaction, data: JsonObject) -> Message:
    """Post a message of the answer; ephemeral ones are for the person alone."""
    check_files(request)
    flags = MessageFlag(data.get("flags") or 0)
    ephemeral = MessageFlag.EPHEMERAL in flags
    world = request.world
    return world.post(
        interaction.channel,
        world.bot,
        data.get("content") or "",
        allowed_mentions=data.get("allowed_mentions"),
        files=request.call.files,
        embeds=data.get("embeds") or [],
        components=data.get("components") or [],
        flags=flags,
        kind=_message_kind(interaction),
        webhook_id=world.bot.id,
        application_id=world.bot.id,
        visible_only_to=interaction.user if ephemeral else None,
        interaction={
            "id": str(interaction.id),
            "type": int(interaction.kind),
            "user": wire.user_payload(interaction.user),
            "authorizing_integration_owners": interaction.payload["authorizing_integration_owners"],
        },
    )


def _message_kind(interaction: Interaction) -> MessageKind:
    if interaction.kind is not InteractionKind.COMMAND:
        return MessageKind.DEFAULT
    if interaction.payload["data"]["type"] == CHAT:
        return MessageKind.CHAT_COMMAND
    return MessageKind.CONTEXT_MENU_COMMAND


def _shown(request: RestRequest, message: Message) -> JsonObject:
    return wire.message_payload(message, request.world.bot, reads_content=True)


# --- follow-ups, and the original


def _interaction(request: RestRequest) -> Interaction:
    """The interaction of a token that still lives and was answered."""
    interaction = request.world.interactions.get(request.path["token"])
    if interaction is None or interaction.has_expired:
        raise refusals.invalid_webhook_token()
    if not interaction.acknowledged:
        raise refusals.unknown_webhook()
    return interaction


async def followup(request: RestRequest) -> Answer:
    """Another message; the first one after a deferral fills the placeholder."""
    interaction, body = _interaction(request), request.body
    message_rules.check_message(body, has_files=bool(request.call.files))
    original = interaction.original
    if original and original.is_loading:
        _fill(request, original, body)
        return 200, _shown(request, original)
    if interaction.user_installed and len(interaction.followups) >= USER_INSTALLED_FOLLOWUPS:
        raise refusals.Refusal(
            400, 40094, "This interaction has reached the maximum number of follow-up messages"
        )
    message = _send(request, interaction, body)
    interaction.followups.append(message)
    return 200, _shown(request, message)


def _fill(request: RestRequest, message: Message, body: JsonObject) -> None:
    """Edit a message of the answer; a placeholder becomes a proper one, for the same readers."""
    check_edit(request, message)
    message.flags &= ~MessageFlag.LOADING
    request.world.revise(message, body, files=request.call.files)


def _message(request: RestRequest) -> tuple[Interaction, Message]:
    interaction = _interaction(request)
    wanted = request.path["message"]
    if wanted == "@original":
        found = interaction.original
    else:
        known = {one.id: one for one in (*interaction.followups, interaction.original) if one}
        found = known.get(request.id("message"))
    if found is None or found.deleted:
        raise refusals.unknown_message()
    return interaction, found


async def get_message(request: RestRequest) -> Answer:
    _, message = _message(request)
    return 200, _shown(request, message)


async def edit_message(request: RestRequest) -> Answer:
    _, message = _message(request)
    _fill(request, message, request.body)
    return 200, _shown(request, message)


async def delete_message(request: RestRequest) -> Answer:
    _, message = _message(request)
    request.world.erase([message], message.channel)
    return NO_CONTENT


ROUTES = (
    route("POST", "/interactions/{interaction}/{token}/callback", callback, token_in_path=True),
)
