"""Which provider answers which task, and what happens when it does not."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from bot.clock import Clock
from bot.errors import ContextTooLong, ModelFault, ModelUnavailable
from bot.llm.chat import ChatEvent, ChatRequest, Finished, Restarted, TextDelta, Usage
from bot.llm.client import ModelClient, ProviderSettings, ToolsMode
from bot.llm.slots import Slots
from bot.llm.tokens import TokenRatios, estimate_prompt_tokens

log = logging.getLogger(__name__)
