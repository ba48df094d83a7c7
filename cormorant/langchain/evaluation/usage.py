"""How many tokens did models read and write for one question?"""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import override

__all__ = ["Usage"]


class Usage(BaseCallbackHandler):
    """Adds up the tokens that chat models tell of.

    langchain-core's own handler leaves out models that do not say their name; here they count,
    under an empty name.

    Attributes:
        by_model: Model name to tokens read and written.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.by_model: dict[str, tuple[int, int]] = {}

    @property
    def tokens(self) -> int:
        """Read and written, of all models."""
        return sum(read + written for read, written in self.by_model.values())

    @override
    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Count one answer."""
        for generation in (one for several in response.generations for one in several):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if not isinstance(message, AIMessage) or not message.usage_metadata:
                continue
            name = str(message.response_metadata.get("model_name") or "")
            used = message.usage_metadata
            with self._lock:
                read, written = self.by_model.get(name, (0, 0))
                self.by_model[name] = read + used["input_tokens"], written + used["output_tokens"]
