"""How does a compressor of ours take part with one of LangChain's wrappers around it?

``with_deadline``, ``with_retry``, ``bind``, ``with_fallbacks``: the wrapper is called, and what is
inside says which arguments it takes.
"""

from __future__ import annotations

from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.utils import ConfigurableFieldSpec
from typing_extensions import override

from cormorant.langchain.retrievers.document_compressors.compressor import Compressor
from cormorant.langchain.scopes.children import innermost

__all__ = ["Wrapped", "compressors_in"]


def compressors_in(stage: object) -> list[Compressor]:
    """The compressors of ours that a wrapper of LangChain's is around; none if it is no such."""
    if not isinstance(stage, Runnable):
        return []
    inner = innermost(stage)
    if isinstance(inner, RunnableWithFallbacks):
        each_ones = [compressors_in(each) for each in inner.runnables]
        return [one for ones in each_ones for one in ones] if all(each_ones) else []
    return [inner] if isinstance(inner, Compressor) else []


class Wrapped(Compressor):
    """A compressor of ours inside a wrapper.

    Args:
        stage: The wrapper.
    """

    stage: Any

    @property
    def _inside(self) -> list[Compressor]:
        return compressors_in(self.stage)

    @property
    def call_arguments(self) -> tuple[str, ...]:  # type: ignore[override]
        """What every compressor inside takes."""
        first, *others = self._inside
        return tuple(
            name
            for name in first.call_arguments
            if all(name in other.call_arguments for other in others)
        )

    @property
    def needs_query(self) -> bool:  # type: ignore[override]
        """Whether one of them needs the question."""
        return any(each.needs_query for each in self._inside)

    @property
    @override
    def arranges(self) -> bool:
        return any(each.arranges for each in self._inside)

    @override
    def room_for(self, k: int) -> int:
        return max(each.room_for(k) for each in self._inside)

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return cast("Runnable[Any, Any]", self.stage).config_specs

    @override
    def invoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """As the wrapper's."""
        return cast("list[Document]", self.stage.invoke(input, config, **kwargs))

    @override
    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """As the wrapper's."""
        return cast("list[Document]", await self.stage.ainvoke(input, config, **kwargs))
