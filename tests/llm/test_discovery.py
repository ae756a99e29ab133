import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from bot.llm.discovery import Candidate, FoundServer, ServerKind, find_local_server, is_chat_model

Serve = Callable[[dict[str, object]], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts a loopback server that answers each path with its JSON, text or handler."""
    async with AsyncExitStack() as stack:

        async def start(answers: dict[str, object]) -> str:
            async def answer(request: web.Request) -> web.StreamResponse:
                found = answers.get(request.path)
                if callable(found):
                    return await found(request)
                if isinstance(found, str):
                    return web.Response(text=found, content_type="text/html")
                return web.json_response(found) if found is not None else web.Response(status=404)

            app = web.Application()
            app.router.add_route("*", "/{path:.*}", answer)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            return f"http://{host}:{port}"

        yield start


async def find(*candidates: tuple[ServerKind, str], timeout_s: float = 5.0) -> FoundServer | None:
    """With more time than in use: a loaded test machine shall not decide."""
    return await find_local_server(
        timeout_s, [Candidate(kind=kind, url=url) for kind, url in candidates]
    )


def in_memory(name: str, *, until: str, **more: object) -> dict[str, object]:
    return {"name": name, "expires_at": until, **more}


def on_disk(name: str, *, changed: str, **more: object) -> dict[str, object]:
    return {"name": name, "modified_at": changed, **more}


NINE, TEN = "2026-03-01T09:00:00.123456789+01:00", "2026-03-01T10:00:00Z"


# Ollama


async def test_ollama_gives_the_model_in_memory_that_was_used_last(serve: Serve) -> None:
    url = await serve(
        {
            "/api/ps": {
                "models": [in_memory("early:1b", until=NINE), in_memory("late:1b", until=TEN)]
            },
            "/api/tags": {"models": [on_disk("newest:1b", changed="2026-04-01T00:00:00Z")]},
        }
    )
    assert await find(("ollama", url)) == FoundServer(
        kind="ollama",
        base_url=f"{url}/v1",
        model="late:1b",
        context_tokens=None,
        is_loaded=True,
    )


async def test_ollama_with_nothing_in_memory_gives_the_model_changed_last(serve: Serve) -> None:
    url = await serve(
        {
            "/api/ps": {"models": []},
            "/api/tags": {
                "models": [on_disk("late:1b", changed=TEN), on_disk("early:1b", changed=NINE)]
            },
        }
    )
    found = await find(("ollama", url))
    assert found is not None
    assert (found.model, found.is_loaded) == ("late:1b", False)


async def test_ollama_of_before_the_list_of_running_models_is_found(serve: Serve) -> None:
    url = await serve({"/api/tags": {"models": [on_disk("only:1b", changed=TEN)]}})
    found = await find(("ollama", url))
    assert found is not None
    assert found.model == "only:1b"


@pytest.mark.parametrize(
    "hidden",
    [
        on_disk("nomic-embed-text:latest", changed=TEN),
        on_disk("mystery:latest", changed=TEN, details={"family": "nomic-bert"}),
        on_disk("large:cloud", changed=TEN, remote_host="https://elsewhere.example"),
    ],
    ids=["embedding by name", "embedding by family", "on a remote host"],
)
async def test_ollama_never_gives(serve: Serve, hidden: dict[str, object]) -> None:
    url = await serve({"/api/tags": {"models": [hidden]}})
    assert await find(("ollama", url)) is None
    chat = on_disk("chat:1b", changed=NINE)
    url = await serve({"/api/tags": {"models": [hidden, chat]}})
    found = await find(("ollama", url))
    assert found is not None
    assert found.model == "chat:1b"


async def test_ollama_passes_over_a_model_that_says_it_cannot_chat(serve: Serve) -> None:
    async def show(request: web.Request) -> web.Response:
        asked = (await request.json())["model"]
        able = {"odd:1b": ["embedding"], "chat:1b": ["completion", "tools"]}
        return web.json_response({"capabilities": able[asked]})

    models = [on_disk("odd:1b", changed=TEN), on_disk("chat:1b", changed=NINE)]
    url = await serve({"/api/tags": {"models": models}, "/api/show": show})
    found = await find(("ollama", url))
    assert found is not None
    assert found.model == "chat:1b"


@pytest.mark.parametrize(
    ("shown", "window"),
    [
        ({"parameters": "num_ctx 16384\nstop <end>"}, 16384),
        ({"parameters": "stop <end>\nnum_ctx     2048"}, 2048),
        (
            {
                "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
            },
            4096,
        ),
        (
            {
                "model_info": {"general.architecture": "llama", "llama.context_length": 2048},
            },
            2048,
        ),
        ({}, None),
    ],
    ids=["set", "set below others", "trained for more", "trained for less", "not told"],
)
async def test_ollama_tells_the_window_it_would_open(
    serve: Serve, shown: dict[str, object], window: int | None
) -> None:
    url = await serve(
        {"/api/tags": {"models": [on_disk("chat:1b", changed=TEN)]}, "/api/show": shown}
    )
    found = await find(("ollama", url))
    assert found is not None
    assert found.context_tokens == window


async def test_ollama_tells_the_window_that_is_open(serve: Serve) -> None:
    url = await serve(
        {
            "/api/ps": {"models": [in_memory("chat:1b", until=TEN, context_length=8192)]},
            "/api/tags": {"models": []},
            "/api/show": {"parameters": "num_ctx 2048"},
        }
    )
    found = await find(("ollama", url))
    assert found is not None
    assert found.context_tokens == 8192


# LM Studio


async def test_lm_studio_gives_the_loaded_model_with_its_window(serve: Serve) -> None:
    models = [
        {"id": "text-embedding-x", "type": "embeddings", "state": "loaded"},
        {"id": "idle", "type": "llm", "state": "not-loaded", "max_context_length": 32768},
        {
            "id": "seeing",
            "type": "vlm",
            "state": "loaded",
            "max_context_length": 32768,
            "loaded_context_length": 6000,
        },
    ]
    url = await serve({"/api/v0/models": {"object": "list", "data": models}})
    assert await find(("lm_studio", url)) == FoundServer(
        kind="lm_studio",
        base_url=f"{url}/v1",
        model="seeing",
        context_tokens=6000,
        is_loaded=True,
    )


@pytest.mark.parametrize(("longest", "window"), [(32768, 4096), (4096, 4096), (2048, 2048)])
async def test_lm_studio_with_nothing_loaded_gives_a_window_it_would_open(
    serve: Serve, longest: int, window: int
) -> None:
    model = {"id": "idle", "type": "llm", "state": "not-loaded", "max_context_length": longest}
    url = await serve({"/api/v0/models": {"data": [model]}})
    found = await find(("lm_studio", url))
    assert found is not None
    assert (found.model, found.context_tokens, found.is_loaded) == ("idle", window, False)


async def test_an_older_lm_studio_gives_a_chat_model_by_its_name(serve: Serve) -> None:
    url = await serve({"/v1/models": {"data": [{"id": "text-embedding-x"}, {"id": "chat"}]}})
    found = await find(("lm_studio", url))
    assert found is not None
    assert (found.model, found.context_tokens) == ("chat", None)


async def test_lm_studio_with_embedding_models_only_is_no_server(serve: Serve) -> None:
    models = [{"id": "plain", "type": "embeddings"}, {"id": "bge-m3", "type": "llm"}]
    url = await serve({"/api/v0/models": {"data": models}})
    assert await find(("lm_studio", url)) is None


# llama.cpp


async def test_llama_cpp_gives_its_model_and_the_window_of_a_slot(serve: Serve) -> None:
    url = await serve(
        {
            "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1},
            "/v1/models": {"data": [{"id": "/models/bert/llama-3.gguf", "meta": {}}]},
        }
    )
    assert await find(("llama_cpp", url)) == FoundServer(
        kind="llama_cpp",
        base_url=f"{url}/v1",
        model="/models/bert/llama-3.gguf",
        context_tokens=4096,
        is_loaded=True,
    )


async def test_llama_cpp_with_several_models_gives_the_loaded_one(serve: Serve) -> None:
    models = [
        {"id": "idle", "status": {"value": "unloaded"}},
        {"id": "busy", "status": {"value": "loaded"}},
    ]
    url = await serve(
        {
            "/props": {"default_generation_settings": {"n_ctx": 0}},
            "/v1/models": {"data": models},
        }
    )
    found = await find(("llama_cpp", url))
    assert found is not None
    assert (found.model, found.context_tokens, found.is_loaded) == ("busy", None, True)


async def test_llama_cpp_that_wants_a_key_is_no_server_for_us(serve: Serve) -> None:
    async def unauthorized(_request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "Invalid API Key"}}, status=401)

    url = await serve({"/props": unauthorized, "/v1/models": {"data": [{"id": "chat"}]}})
    assert await find(("llama_cpp", url)) is None


async def test_llama_cpp_for_embeddings_is_no_server(serve: Serve) -> None:
    url = await serve(
        {
            "/props": {"default_generation_settings": {"n_ctx": 512}},
            "/v1/models": {"data": [{"id": "bge-small-en.gguf"}]},
        }
    )
    assert await find(("llama_cpp", url)) is None


# Several, and others on the ports


async def one_of_each(
    serve: Serve, *, lm_studio: str = "not-loaded"
) -> list[tuple[ServerKind, str]]:
    ollama = await serve({"/api/tags": {"models": [on_disk("chat:1b", changed=TEN)]}})
    studio = await serve(
        {"/api/v0/models": {"data": [{"id": "studio", "type": "llm", "state": lm_studio}]}}
    )
    return [("ollama", ollama), ("lm_studio", studio)]


async def test_the_first_of_several_servers_is_taken(serve: Serve) -> None:
    found = await find(*await one_of_each(serve))
    assert found is not None
    assert found.kind == "ollama"


async def test_a_model_in_memory_comes_before_an_earlier_server(serve: Serve) -> None:
    found = await find(*await one_of_each(serve, lm_studio="loaded"))
    assert found is not None
    assert found.kind == "lm_studio"


@pytest.mark.parametrize("kind", ["ollama", "lm_studio", "llama_cpp"])
@pytest.mark.parametrize(
    "answer",
    ["<html>Hello</html>", "", {}, [], {"models": "no", "data": 3}, {"models": [{}], "data": [{}]}],
    ids=["page", "nothing", "object", "list", "wrong types", "wrong entries"],
)
async def test_something_else_is_quietly_not_found(
    serve: Serve, kind: ServerKind, answer: object
) -> None:
    paths = ("/api/ps", "/api/tags", "/api/show", "/api/v0/models", "/v1/models", "/props")
    url = await serve(dict.fromkeys(paths, answer))
    assert await find((kind, url)) is None


@pytest.mark.parametrize("kind", ["ollama", "lm_studio", "llama_cpp"])
async def test_bytes_that_are_no_http_are_quietly_not_found(kind: ServerKind) -> None:
    async def babble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\xff SSH-2.0 \r\n\r\n")
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await find((kind, f"http://127.0.0.1:{port}")) is None


async def test_a_closed_port_is_quietly_not_found() -> None:
    assert await find(("ollama", "http://127.0.0.1:1")) is None


async def test_an_answer_without_end_is_quietly_not_found(serve: Serve) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 100_000)

    url = await serve({"/api/v0/models": flood, "/v1/models": flood})
    async with asyncio.timeout(10):
        assert await find(("lm_studio", url), timeout_s=60) is None


async def test_a_silent_port_costs_no_more_than_the_time_out(serve: Serve) -> None:
    released = asyncio.Event()

    async def silence(_request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    silent = await serve({"/api/ps": silence, "/api/tags": silence})
    [_, studio] = await one_of_each(serve)
    before = time.monotonic()
    found = await find(("ollama", silent), studio, timeout_s=0.3)
    took = time.monotonic() - before
    released.set()
    assert found is not None
    assert found.kind == "lm_studio"
    assert 0.3 <= took < 1.5


async def test_no_candidate_is_no_server() -> None:
    assert await find() is None


@pytest.mark.parametrize(
    "name",
    [
        "nomic-embed-text:v1.5",
        "text-embedding-3-small",
        "hf.co/BAAI/bge-m3-GGUF:latest",
        "intfloat/multilingual-e5-large",
        "gte-qwen2-1.5b",
        "all-minilm:22m",
        "paraphrase-multilingual:latest",
        "colbert-v2",
        r"C:\models\Qwen3-Reranker-0.6B.gguf",
    ],
)
def test_is_no_chat_model(name: str) -> None:
    assert not is_chat_model(name)


@pytest.mark.parametrize(
    "name",
    [
        "llama3.2:1b",
        "qwen2.5-coder-0.5b-instruct-q4_k_m",
        "gemma-3n-E4B-it",
        "hf.co/bge-fans/llama-chat",
        "ge5ture-7b",
        "gilberto-7b",
    ],
)
def test_is_a_chat_model(name: str) -> None:
    assert is_chat_model(name)
