"""A model server that already listens on this machine, found in a moment.

Asked over httpx2: the `openai` package brings it, so the model layer has one HTTP client. What
else may stand on these ports (a page, garbage, silence) counts as no server.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal, TypeVar, assert_never

import httpx2
from pydantic import AliasChoices, AwareDatetime, BaseModel, Field, ValidationError

ServerKind = Literal["ollama", "lm_studio", "llama_cpp"]

TIMEOUT_S = 0.3
MAX_ANSWER_BYTES = 4_000_000
UNLOADED_CONTEXT_TOKENS = 4096
"""The window that Ollama and LM Studio open by default, however much the model could take."""

NOT_A_CHAT_MODEL = re.compile(
    r"embed|rerank|minilm|paraphrase|(?:^|[^a-z0-9])(?:bge|e5|gte|[a-z]*bert)(?:[^a-z0-9]|$)"
)
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)$", re.MULTILINE)

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Where a server of one kind may listen."""

    kind: ServerKind
    url: str


DEFAULT_CANDIDATES = (
    Candidate(kind="ollama", url="http://127.0.0.1:11434"),
    Candidate(kind="lm_studio", url="http://127.0.0.1:1234"),
    Candidate(kind="llama_cpp", url="http://127.0.0.1:8080"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server with a chat model; `context_tokens` is None where nothing tells its window."""

    kind: ServerKind
    base_url: str
    model: str
    context_tokens: int | None
    is_loaded: bool


async def find_local_server(
    timeout_s: float = TIMEOUT_S, candidates: Sequence[Candidate] = DEFAULT_CANDIDATES
) -> FoundServer | None:
    """The server with the model last used, or None after at most `timeout_s`.

    One that has its model in memory comes before one that would have to load it; else the order
    of `candidates` decides.
    """
    found: dict[Candidate, FoundServer] = {}

    async def look(client: httpx2.AsyncClient, candidate: Candidate) -> None:
        server = await _ask(client, candidate)
        if server is not None:
            found[candidate] = server

    # Plain HTTP only: a TLS context costs 0.1 s. The environment may name a proxy: not for this.
    async with httpx2.AsyncClient(verify=False, trust_env=False) as client:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
                for candidate in candidates:
                    group.create_task(look(client, candidate))
    in_order = [found[candidate] for candidate in candidates if candidate in found]
    return min(in_order, key=lambda server: not server.is_loaded, default=None)


def is_chat_model(name: str) -> bool:
    """Whether a model is one to chat with, as far as its name tells."""
    return NOT_A_CHAT_MODEL.search(re.split(r"[\\/]", name.lower())[-1]) is None


async def _ask(client: httpx2.AsyncClient, candidate: Candidate) -> FoundServer | None:
    match candidate.kind:
        case "ollama":
            return await _ask_ollama(client, candidate.url)
        case "lm_studio":
            return await _ask_lm_studio(client, candidate.url)
        case "llama_cpp":
            return await _ask_llama_cpp(client, candidate.url)
        case _:
            assert_never(candidate.kind)


async def _read(
    client: httpx2.AsyncClient, url: str, shape: type[Answer], *, post: BaseModel | None = None
) -> Answer | None:
    """The JSON answer, where it is one and has this shape."""
    body = bytearray()
    content = post.model_dump_json() if post is not None else None
    try:
        async with client.stream("POST" if post else "GET", url, content=content) as response:
            if response.status_code != HTTPStatus.OK.value:
                return None
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    return None
        return shape.model_validate_json(bytes(body))
    except (httpx2.HTTPError, ValidationError):
        return None


class _OllamaDetails(BaseModel):
    family: str = ""


class _OllamaModel(BaseModel):
    """A model in memory (`/api/ps`), or one on the disk (`/api/tags`)."""

    name: str
    last_used: AwareDatetime = Field(
        datetime.min.replace(tzinfo=UTC),
        validation_alias=AliasChoices("expires_at", "modified_at"),
    )
    context_length: int | None = None
    remote_host: str = ""
    details: _OllamaDetails = _OllamaDetails()


class _OllamaModels(BaseModel):
    models: list[_OllamaModel]


class _OllamaQuestion(BaseModel):
    model: str


class _OllamaShown(BaseModel):
    capabilities: list[str] = ["completion"]
    parameters: str = ""
    model_info: dict[str, object] = {}


async def _ask_ollama(client: httpx2.AsyncClient, url: str) -> FoundServer | None:
    in_memory = await _read(client, f"{url}/api/ps", _OllamaModels)
    on_disk = await _read(client, f"{url}/api/tags", _OllamaModels)
    loaded = _last_used_first(in_memory)
    for model in [*loaded, *_last_used_first(on_disk)]:
        question = _OllamaQuestion(model=model.name)
        shown = await _read(client, f"{url}/api/show", _OllamaShown, post=question)
        if shown is None or "completion" in shown.capabilities:
            return FoundServer(
                kind="ollama",
                base_url=f"{url}/v1",
                model=model.name,
                context_tokens=model.context_length or _ollama_window(shown or _OllamaShown()),
                is_loaded=model in loaded,
            )
    return None


def _last_used_first(models: _OllamaModels | None) -> list[_OllamaModel]:
    """The chat models of this machine: one that runs on a remote host would send the chat away."""
    usable = [
        model
        for model in (models.models if models else [])
        if is_chat_model(model.name)
        and is_chat_model(model.details.family)
        and not model.remote_host
    ]
    return sorted(usable, key=lambda model: model.last_used, reverse=True)


def _ollama_window(shown: _OllamaShown) -> int | None:
    """The window that the model's own settings ask for, else what Ollama opens by default.

    The model's trained length is no window: Ollama cuts a longer prompt silently.
    """
    wanted = NUM_CTX.search(shown.parameters)
    if wanted is not None:
        return int(wanted[1])
    architecture = shown.model_info.get("general.architecture")
    trained = shown.model_info.get(f"{architecture}.context_length")
    return min(trained, UNLOADED_CONTEXT_TOKENS) if isinstance(trained, int) else None


class _LmStudioModel(BaseModel):
    id: str
    type: str = "llm"
    state: str = ""
    max_context_length: int | None = None
    loaded_context_length: int | None = None

    @property
    def is_loaded(self) -> bool:
        return self.state == "loaded"

    @property
    def window(self) -> int | None:
        if self.loaded_context_length is not None or self.max_context_length is None:
            return self.loaded_context_length
        return min(self.max_context_length, UNLOADED_CONTEXT_TOKENS)


class _LmStudioModels(BaseModel):
    data: list[_LmStudioModel]


async def _ask_lm_studio(client: httpx2.AsyncClient, url: str) -> FoundServer | None:
    models = await _read(client, f"{url}/api/v0/models", _LmStudioModels)
    if models is None:  # before 0.3.6
        models = await _read(client, f"{url}/v1/models", _LmStudioModels)
    usable = [
        model
        for model in (models.data if models else [])
        if model.type in ("llm", "vlm") and is_chat_model(model.id)
    ]
    if not usable:
        return None
    chosen = min(usable, key=lambda model: not model.is_loaded)
    return FoundServer(
        kind="lm_studio",
        base_url=f"{url}/v1",
        model=chosen.id,
        context_tokens=chosen.window,
        is_loaded=chosen.is_loaded,
    )


class _LlamaSettings(BaseModel):
    n_ctx: int | None = None


class _LlamaProps(BaseModel):
    default_generation_settings: _LlamaSettings


class _LlamaStatus(BaseModel):
    value: str


class _LlamaModel(BaseModel):
    """`status` is told by a server of several models."""

    id: str
    status: _LlamaStatus = _LlamaStatus(value="loaded")

    @property
    def is_loaded(self) -> bool:
        return self.status.value == "loaded"


class _LlamaModels(BaseModel):
    data: list[_LlamaModel]


async def _ask_llama_cpp(client: httpx2.AsyncClient, url: str) -> FoundServer | None:
    """`/props` answers only where no key is needed, and tells llama.cpp from others on the port."""
    props = await _read(client, f"{url}/props", _LlamaProps)
    models = await _read(client, f"{url}/v1/models", _LlamaModels)
    if props is None or models is None:
        return None
    usable = [model for model in models.data if is_chat_model(model.id)]
    if not usable:
        return None
    chosen = min(usable, key=lambda model: not model.is_loaded)
    return FoundServer(
        kind="llama_cpp",
        base_url=f"{url}/v1",
        model=chosen.id,
        context_tokens=props.default_generation_settings.n_ctx or None,
        is_loaded=chosen.is_loaded,
    )
