"""The ways in which Discord says no: HTTP status, Discord's own code, and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fakes.discord.records import JsonObject


class Refusal(Exception):
    """Raised by a handler; becomes the error answer."""

    def __init__(
        self, status: int, code: int, message: str, *, errors: JsonObject | None = None
    ) -> None:
        super().__init__(f"{status} {code} {message} {errors or ''}")
        self.status = status
        self.payload: JsonObject = {"message": message, "code": code}
        if errors:
            self.payload["errors"] = errors


def unauthorized() -> Refusal:
    return Refusal(401, 0, "401: Unauthorized")


def unknown_channel() -> Refusal:
    return Refusal(404, 10003, "Unknown Channel")


def unknown_guild() -> Refusal:
    return Refusal(404, 10004, "Unknown Guild")


def unknown_member() -> Refusal:
    return Refusal(404, 10007, "Unknown Member")


def unknown_message() -> Refusal:
    return Refusal(404, 10008, "Unknown Message")


def unknown_user() -> Refusal:
    return Refusal(404, 10013, "Unknown User")


def unknown_webhook() -> Refusal:
    return Refusal(404, 10015, "Unknown Webhook")


def unknown_interaction() -> Refusal:
    return Refusal(404, 10062, "Unknown interaction")


def missing_access() -> Refusal:
    return Refusal(403, 50001, "Missing Access")


def missing_permissions() -> Refusal:
    return Refusal(403, 50013, "Missing Permissions")


def not_the_author() -> Refusal:
    return Refusal(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> Refusal:
    return Refusal(400, 50006, "Cannot send an empty message")


def direct_messages_closed() -> Refusal:
    return Refusal(403, 50007, "Cannot send messages to this user")


def already_acknowledged() -> Refusal:
    return Refusal(400, 40060, "Interaction has already been acknowledged.")


def invalid_webhook_token() -> Refusal:
    return Refusal(401, 50027, "Invalid Webhook Token")


def too_large() -> Refusal:
    return Refusal(413, 40005, "Request entity too large")


def invalid_form(path: str, code: str, message: str) -> Refusal:
    """50035, with the fault at a dotted path ("embeds.0.title") in Discord's nested form."""
    errors: JsonObject = {"_errors": [{"code": code, "message": message}]}
    for step in reversed(path.split(".")):
        errors = {step: errors}
    return Refusal(400, 50035, "Invalid Form Body", errors=errors)
