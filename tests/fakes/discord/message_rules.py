"""What Discord accepts as a message: lengths, embeds, components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.discord import refusals
from tests.fakes.discord.records import MessageFlag

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.discord.records import JsonObject

CONTENT_LIMIT = 2000
NONCE_LIMIT = 25
EMBEDS_LIMIT = 10
EMBED_FIELDS_LIMIT = 25
EMBEDS_TOTAL_LIMIT = 6000
EMBED_LIMITS = {"title": 256, "description": 4096}
COMPONENTS_LIMIT = 40
ROWS_LIMIT = 5
BUTTONS_IN_ROW_LIMIT = 5
OPTIONS_LIMIT = 25
CUSTOM_ID_LIMIT = 100
LABEL_LIMIT = 80
ACTION_ROW, BUTTON, STRING_SELECT = 1, 2, 3
LINK_STYLE = 5


def check_message(body: JsonObject, *, has_files: bool) -> None:
    """Refuse a new message (or an answer to an interaction) that Discord would refuse."""
    check_parts(body)
    if str(body.get("nonce") or "")[NONCE_LIMIT:]:
        raise too_long("nonce", NONCE_LIMIT)
    filled = any(body.get(part) for part in ("content", "embeds", "components", "sticker_ids"))
    if not filled and not has_files:
        raise refusals.empty_message()


def check_parts(body: JsonObject) -> None:
    """The rules that hold for a new message and for an edit alike."""
    if len(body.get("content") or "") > CONTENT_LIMIT:
        raise too_long("content", CONTENT_LIMIT)
    check_embeds(body.get("embeds") or [])
    is_v2 = MessageFlag.COMPONENTS_V2 in MessageFlag(body.get("flags") or 0)
    check_components(body.get("components") or [], is_v2=is_v2)
    if is_v2 and (body.get("content") or body.get("embeds")):
        raise refusals.invalid_form(
            "content",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
        )


def too_long(path: str, limit: int) -> refusals.Refusal:
    return refusals.invalid_form(
        path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length."
    )


# --- embeds


def check_embeds(embeds: list[JsonObject]) -> None:
    if len(embeds) > EMBEDS_LIMIT:
        raise too_long("embeds", EMBEDS_LIMIT)
    for index, embed in enumerate(embeds):
        if len(embed.get("fields") or []) > EMBED_FIELDS_LIMIT:
            raise too_long(f"embeds.{index}.fields", EMBED_FIELDS_LIMIT)
        for path, text, limit in _embed_texts(embed):
            if len(text) > limit:
                raise too_long(f"embeds.{index}.{path}", limit)
    total = sum(len(text) for embed in embeds for _, text, _ in _embed_texts(embed))
    if total > EMBEDS_TOTAL_LIMIT:
        raise refusals.invalid_form(
            "embeds",
            "MAX_EMBED_SIZE_EXCEEDED",
            f"Embed size exceeds maximum size of {EMBEDS_TOTAL_LIMIT}",
        )


def _embed_texts(embed: JsonObject) -> Iterator[tuple[str, str, int]]:
    """Every counted text of an embed: its path, itself, its limit."""
    for name, limit in EMBED_LIMITS.items():
        yield name, embed.get(name) or "", limit
    yield "footer.text", (embed.get("footer") or {}).get("text") or "", 2048
    yield "author.name", (embed.get("author") or {}).get("name") or "", 256
    for index, field in enumerate(embed.get("fields") or []):
        yield f"fields.{index}.name", field.get("name") or "", 256
        yield f"fields.{index}.value", field.get("value") or "", 1024


# --- components


def all_components(components: list[JsonObject]) -> Iterator[JsonObject]:
    """Every component, the nested ones too (rows, sections, containers, labels)."""
    for component in components:
        yield component
        inner = list(component.get("components") or [])
        inner += [component[key] for key in ("accessory", "component") if component.get(key)]
        yield from all_components(inner)


def check_components(components: list[JsonObject], *, is_v2: bool) -> None:
    every = list(all_components(components))
    if not is_v2 and len(components) > ROWS_LIMIT:
        raise too_long("components", ROWS_LIMIT)
    if len(every) > COMPONENTS_LIMIT and is_v2:
        raise too_long("components", COMPONENTS_LIMIT)
    for component in every:
        _check_component(component)
    custom_ids = [one["custom_id"] for one in every if one.get("custom_id")]
    if len(custom_ids) != len(set(custom_ids)):
        raise refusals.invalid_form(
            "components",
            "COMPONENT_CUSTOM_ID_DUPLICATED",
            "Component custom id cannot be duplicated",
        )


def _check_component(component: JsonObject) -> None:
    if len(component.get("custom_id") or "") > CUSTOM_ID_LIMIT:
        raise too_long("components.custom_id", CUSTOM_ID_LIMIT)
    if len(component.get("options") or []) > OPTIONS_LIMIT:
        raise too_long("components.options", OPTIONS_LIMIT)
    kind = component.get("type")
    if kind == ACTION_ROW and not 1 <= len(component["components"]) <= BUTTONS_IN_ROW_LIMIT:
        raise refusals.invalid_form(
            "components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length."
        )
    if kind == BUTTON:
        _check_button(component)
    if kind == STRING_SELECT and not component.get("options"):
        raise refusals.invalid_form(
            "components.options", "BASE_TYPE_REQUIRED", "This field is required"
        )


def _check_button(button: JsonObject) -> None:
    if len(button.get("label") or "") > LABEL_LIMIT:
        raise too_long("components.label", LABEL_LIMIT)
    target = "url" if button.get("style") == LINK_STYLE else "custom_id"
    if not button.get(target):
        raise refusals.invalid_form(
            f"components.{target}", "BASE_TYPE_REQUIRED", "A custom id or url is required"
        )


def numbered(components: list[JsonObject]) -> list[JsonObject]:
    """Give every component its `id`, as Discord does for those that come without one."""
    for number, component in enumerate(all_components(components), start=1):
        component.setdefault("id", number)
    return components
