"""[llm]: the model servers Madeleine asks, and how patient she is with them."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from bot.config.values import BaseUrl, Fraction, Micros, Section, VariableName

ToolStyle = Literal["native", "structured", "none"]


class ProviderConfig(Section):
    """One model on one server that speaks the OpenAI protocol. Prices are for a million tokens."""

    base_url: BaseUrl
    model: str = Field(min_length=1, max_length=200)
    api_key_env: VariableName | None = None
    max_context: int = Field(default=32_768, ge=1_024, le=10_000_000)
    timeout_s: int = Field(default=120, ge=1, le=3_600)
    tools: ToolStyle = "native"
    slots: int = Field(default=4, ge=1, le=1_000)
    short_term_memory_tool: bool | None = None
    input_price: Micros = 0
    output_price: Micros = 0

    @property
    def takes_short_term_memory_tool(self) -> bool:
        """`short_term_memory_tool`, or where it is not set: no for a host under novelai.net."""
        if self.short_term_memory_tool is not None:
            return self.short_term_memory_tool
        host = (urlsplit(self.base_url).hostname or "").rstrip(".")
        return host != "novelai.net" and not host.endswith(".novelai.net")


class RouteConfig(ProviderConfig):
    """The provider for one task, and those asked in turn when it fails."""

    fallbacks: tuple[ProviderConfig, ...] = Field(default=(), max_length=10, strict=False)

    @property
    def providers(self) -> tuple[ProviderConfig, ...]:
        """The route's own provider first, then its fallbacks."""
        return (self, *self.fallbacks)


class LlmConfig(Section):
    """Routes by task (`handoff` absent: the chat route), and numbers that hold for each of them."""

    chat: RouteConfig | None = None
    handoff: RouteConfig | None = None
    embeddings: RouteConfig | None = None
    retries: int = Field(default=2, ge=0, le=10)
    retry_after_max_s: int = Field(default=30, ge=0, le=600)
    stream_stall_s: int = Field(default=120, ge=1, le=3_600)
    empty_answer_retries: int = Field(default=2, ge=0, le=10)
    length_continuations: int = Field(default=1, ge=0, le=10)
    token_ratio_start: Annotated[float, Field(ge=0.1, le=10)] = 1.1
    token_ratio_min: Annotated[float, Field(ge=0.1, le=10)] = 0.6
    token_ratio_max: Annotated[float, Field(ge=0.1, le=10)] = 1.8
    token_ratio_weight: Fraction = 0.2
