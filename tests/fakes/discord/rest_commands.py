"""REST: registering application commands."""

from __future__ import annotations

from tests.fakes.discord import refusals
from tests.fakes.discord.command_book import without_translations
from tests.fakes.discord.routing import NO_CONTENT, Answer, RestRequest, route


async def put(request: RestRequest) -> Answer:
    given = request.call.json
    if not isinstance(given, list):
        raise refusals.Refusal(400, 50035, "Invalid Form Body")
    return 200, request.world.commands.replace_all(_guild_id(request), given)


async def post(request: RestRequest) -> Answer:
    return 201, request.world.commands.add(_guild_id(request), request.body)


async def get(request: RestRequest) -> Answer:
    commands = request.world.commands.of(_guild_id(request))
    if request.call.query.get("with_localizations", "").lower() in ("1", "true"):
        return 200, commands
    return 200, [without_translations(command) for command in commands]


async def delete(request: RestRequest) -> Answer:
    request.world.commands.remove(_guild_id(request), request.id("command"))
    return NO_CONTENT


def _guild_id(request: RestRequest) -> int | None:
    if request.id("application") != request.world.bot.id:
        raise refusals.Refusal(403, 20012, "You are not authorized to perform this action")
    return request.guild.id if "guild" in request.path else None


GLOBAL = "/applications/{application}/commands"
IN_GUILD = "/applications/{application}/guilds/{guild}/commands"
ROUTES = tuple(
    each
    for path in (GLOBAL, IN_GUILD)
    for each in (
        route("PUT", path, put),
        route("POST", path, post),
        route("GET", path, get),
        route("DELETE", path + "/{command}", delete),
    )
)
