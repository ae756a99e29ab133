"""Which provider answers which task, and what happens when it does not."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.clock import Clock
from bot.errors import ContextTooLong, ModelFault
from bot.llm.chat import ChatEvent, ChatRequest, Finished, Restarted, TextDelta
from bot.llm.client import ModelClient, ProviderSettings, ToolsMode
from bot.llm.slots import Slots
from bot.llm.tokens import RatioSettings, TokenRatios, estimate_prompt_tokens
from bot.llm.trial import Patience, Provider, RetrySettings, Trial

log = logging.getLogger(__name__)

Task = Literal["chat", "handoff", "embeddings"]

# Who goes first where requests wait for a slot of the same server.
_PRIORITIES: dict[Task, int] = {"chat": 0, "embeddings": 0, "handoff": 1}
_PRICED_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """The providers of each task, the preferred one first. No `handoff`: as for the chat."""

    chat: tuple[ProviderSettings, ...]
    handoff: tuple[ProviderSettings, ...] = ()
    embeddings: tuple[ProviderSettings, ...] = ()
    retry: RetrySettings = field(default_factory=RetrySettings)
    ratio: RatioSettings = field(default_factory=RatioSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """Vectors in the order of their texts; only those of one model can be compared."""

    vectors: list[list[float]]
    provider: str
    model: str


class Route:
    """Answers one task: asks its providers in order until one gives a whole answer."""

    def __init__(
        self,
        task: Task,
        providers: Sequence[Provider],
        *,
        retry: RetrySettings,
        ratios: TokenRatios,
        patience: Patience,
    ) -> None:
        self.task: Task = task
        self._providers = providers
        self._retry = retry
        self._ratios = ratios
        self._patience = patience

    @property
    def provider(self) -> ProviderSettings:
        """The preferred provider: prompts are made for it."""
        return self._providers[0].client.settings

    @property
    def window(self) -> int:
        """Tokens that the prompt and the answer may have together."""
        return self.provider.max_context

    @property
    def tools_mode(self) -> ToolsMode:
        return self.provider.tools

    @property
    def ratio(self) -> float:
        """What `estimate_tokens` is to be multiplied by for this route's model."""
        return self._ratios.ratio(self.provider.name, self.provider.model)

    def cost(self, finished: Finished) -> int:
        """What an answer of this route cost, in micro-units, rounded up."""
        for provider in self._providers:
            settings, usage = provider.client.settings, finished.usage
            if usage and (settings.name, settings.model) == (finished.provider, finished.model):
                price = usage.prompt_tokens * settings.input_price
                price += usage.completion_tokens * settings.output_price
                return -(-price // _PRICED_TOKENS)
        return 0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """The answer as it comes, `Finished` last; `Restarted` where it begins anew.

        Close the generator (`contextlib.aclosing`) where it is not used up. Raises ContextTooLong
        at once, and ModelUnavailable where no provider gives an answer.
        """
        trial = self._trial()
        shown = False
        while True:
            provider = await trial.next()
            outdated = shown
            try:
                async with aclosing(self._ask(provider, request)) as events:
                    async for event in events:
                        if outdated:
                            yield Restarted()
                            outdated = False
                        shown = isinstance(event, TextDelta)
                        yield event
            except ContextTooLong:
                raise
            except ModelFault as fault:
                self._note(trial, provider, fault)
            else:
                return

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """A vector for each text. Raises ModelUnavailable where no provider gives them."""
        trial = self._trial()
        while True:
            provider = await trial.next()
            settings = provider.client.settings
            try:
                async with provider.slots.hold(_PRIORITIES[self.task]):
                    vectors = await provider.client.embed(texts)
                return Embeddings(vectors=vectors, provider=settings.name, model=settings.model)
            except ContextTooLong:
                raise
            except ModelFault as fault:
                self._note(trial, provider, fault)

    def _trial(self) -> Trial:
        return Trial(self._providers, self._retry, self._patience)

    async def _ask(
        self, provider: Provider, request: ChatRequest
    ) -> AsyncGenerator[ChatEvent, None]:
        """One attempt with one provider; it teaches how the model counts."""
        settings = provider.client.settings
        if settings.tools != "native":
            request = replace(request, tools=())
        slot = provider.slots.hold(_PRIORITIES[self.task])
        try:
            async with slot, aclosing(provider.client.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Finished) and event.usage is not None:
                        self._ratios.learn(
                            settings.name,
                            settings.model,
                            estimated=estimate_prompt_tokens(request, 1.0),
                            reported=event.usage.prompt_tokens,
                        )
                    yield event
        except ContextTooLong as fault:
            self._ratios.correct_too_long(
                settings.name,
                settings.model,
                estimated=estimate_prompt_tokens(request, 1.0),
                limit=fault.limit,
                asked=fault.asked,
            )
            raise

    def _note(self, trial: Trial, provider: Provider, fault: ModelFault) -> None:
        trial.failed(fault)
        name, model = provider.client.settings.name, provider.client.settings.model
        log.warning(
            "model_request_failed",
            extra={"task": self.task, "provider": name, "model": model, "kind": fault.kind},
        )
        # The provider's sentence may repeat what people wrote.
        log.debug("model_request_failed: %s", fault.detail)


class Router:
    """The routes by task; they share clients, the slots of a server, and what was learned."""

    def __init__(
        self,
        settings: RouterSettings,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,  # noqa: S311 - spreads retries, guards nothing
    ) -> None:
        self._settings = settings
        self._patience = Patience(clock=clock, sleep=sleep, jitter=jitter)
        self._ratios = TokenRatios(settings.ratio)
        self._providers = _providers(
            (*settings.chat, *settings.handoff, *settings.embeddings), clock
        )
        self.chat = self._route("chat", settings.chat)
        self.handoff = self._route("handoff", settings.handoff or settings.chat)
        self.embeddings = (
            self._route("embeddings", settings.embeddings) if settings.embeddings else None
        )

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        for provider in self._providers.values():
            await provider.client.close()

    def _route(self, task: Task, providers: tuple[ProviderSettings, ...]) -> Route:
        return Route(
            task,
            [self._providers[settings] for settings in providers],
            retry=self._settings.retry,
            ratios=self._ratios,
            patience=self._patience,
        )


def _providers(
    settings: tuple[ProviderSettings, ...], clock: Clock
) -> dict[ProviderSettings, Provider]:
    """A client for each provider; those on one server share the slots of the strictest."""
    sizes: dict[str, int] = {}
    for one in settings:
        sizes[one.base_url] = min(one.slots, sizes.get(one.base_url, one.slots))
    slots = {base_url: Slots(size) for base_url, size in sizes.items()}
    return {
        one: Provider(client=ModelClient(one, clock), slots=slots[one.base_url])
        for one in dict.fromkeys(settings)
    }
