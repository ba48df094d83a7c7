"""What does one retriever find for several questions a model made of one, fused?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import RetrieverLike
from langchain_core.runnables import Runnable, ensure_config
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from typing_extensions import override

from cormorant import defaults
from cormorant.errors import RewriteError
from cormorant.langchain.calls.blocking import aside
from cormorant.langchain.provenance import Answer
from cormorant.langchain.retrievers.asking.chain import chain_of, check_chain, check_retriever
from cormorant.langchain.retrievers.asking.rewriting import (
    aask_model,
    ask_model,
    excuse,
    key,
    questions,
    quoted,
    searchable,
    told,
)
from cormorant.langchain.retrievers.base import Retriever, check_k
from cormorant.langchain.retrievers.calling import Run, cut, takes
from cormorant.langchain.retrievers.fusing.by_rank import check_rrf_k, fused
from cormorant.langchain.retrievers.fusing.legs import LegCall, OnError, aask_all, ask_all, with_k

__all__ = ["SeveralQuestions"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The questions, by the names of their legs, and what must be said of them."""

    by_name: dict[str, str]
    degraded: tuple[str, ...] = ()


class SeveralQuestions(Retriever):
    """A model makes questions of one; all are asked at once, their lists fused by ranks.

    The base of MultiQueryRetriever and DecompositionRetriever.
    """

    retriever: RetrieverLike
    llm_chain: Runnable[Any, Any]
    include_original: bool = True
    variants: int | None = None
    k: int | None = None
    rrf_k: float = defaults.RRF_K
    id_key: str | None = None
    on_llm_error: OnError = "degrade"
    on_error: OnError = "raise"
    verbose: bool = False

    call_arguments: ClassVar[tuple[str, ...]] = ("k", "filter")
    made: ClassVar[str] = "question"
    """What a question of the model's is called."""

    def __init__(self, **values: Any) -> None:
        check_retriever(values.get("retriever"))
        check_chain(values.get("llm_chain"), "llm_chain")
        for name in ("variants", "k"):
            if values.get(name) is not None:
                check_k(values[name], name)
        check_rrf_k(values.get("rrf_k", 0), "rrf_k")
        super().__init__(**values)

    @staticmethod
    def _chain(
        prompt: object,
        llm: object,
        parser: Runnable[Any, Any],
        *,
        call: str,
        variants: int,
    ) -> Runnable[Any, Any]:
        """Of a question to what the parser makes; the prompt may say how many are wanted."""
        if isinstance(prompt, BasePromptTemplate) and "variants" in prompt.input_variables:
            check_k(variants, "variants")
            prompt = prompt.partial(variants=str(variants))
        return chain_of(prompt, llm, parser, call=call, gives=("question",))

    @property
    @override
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the retriever and the chain."""
        below = (self.retriever, self.llm_chain)
        return get_unique_config_specs(spec for child in below for spec in child.config_specs)

    @override
    def accepts(self, name: str) -> bool:
        """Whether a call's argument of this name reaches the retriever."""
        return super().accepts(name) and (name == "with_scores" or takes(self.retriever, name))

    def generate_queries(
        self, question: str, run_manager: CallbackManagerForRetrieverRun | None = None
    ) -> list[str]:
        """The questions the model makes of one, without chatter and numbers.

        Args:
            question: The user's.
            run_manager: Of the run the model's becomes a child of.
        """
        manager = run_manager or CallbackManagerForRetrieverRun.get_noop_manager()
        made = self._generated(question, Run(manager, ensure_config()))
        return searchable(made, self.made)[0]

    async def agenerate_queries(
        self, question: str, run_manager: AsyncCallbackManagerForRetrieverRun | None = None
    ) -> list[str]:
        """Like :meth:`generate_queries`, awaiting the chain."""
        manager = run_manager or AsyncCallbackManagerForRetrieverRun.get_noop_manager()
        made = await self._agenerated(question, Run(manager, ensure_config()))
        return searchable(made, self.made)[0]

    @abstractmethod
    def _log(self, made: Sequence[str]) -> None:
        """Tell the log of the module what the model made."""

    def _generated(self, question: str, run: Run) -> list[str]:
        return self._read(ask_model(run, self.llm_chain, {"question": question}, "llm_chain"))

    async def _agenerated(self, question: str, run: Run) -> list[str]:
        output = await aask_model(run, self.llm_chain, {"question": question}, "llm_chain")
        return await aside(output, self._read, output)

    def _read(self, output: Any) -> list[str]:
        made = questions(output, self.get_name())
        if self.verbose:
            self._log(made)
        return made

    @override
    def _find(self, query: str, run: Run, **asked: Any) -> Answer:
        try:
            made = self._generated(query, run)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            prepared = self._alone(query, error)
        else:
            prepared = self._prepared(query, made)
        answers = ask_all(run, self._legs(prepared, asked), query, self.on_error)
        return self._fused(prepared, answers, asked)

    @override
    async def _afind(self, query: str, run: Run, **asked: Any) -> Answer:
        try:
            made = await self._agenerated(query, run)
        except Exception as error:  # noqa: BLE001 - whatever a model's client raises
            prepared = self._alone(query, error)
        else:
            prepared = await aside(made, self._prepared, query, made)
        answers = await aask_all(run, self._legs(prepared, asked), query, self.on_error)
        # Long lists take tens of milliseconds, which the event loop need not wait for.
        return await run_in_executor(None, self._fused, prepared, answers, asked)

    def _alone(self, query: str, error: Exception) -> _Asked:
        says = excuse(error, self.on_llm_error, "the question alone was asked")
        return _Asked({"original": query}, (says,))

    def _prepared(self, query: str, made: Sequence[str]) -> _Asked:
        kept, says = searchable(made, self.made)
        if not kept:
            nothing = f"it made no {self.made} of {quoted(query)} that can be searched for"
            alone = self._alone(query, RewriteError(nothing))
            return replace(alone, degraded=(*alone.degraded, *says))
        others = [each for each in kept if key(each) != key(query)]
        if self.variants is None and len(others) > defaults.MAX_QUESTIONS:
            most = defaults.MAX_QUESTIONS
            cut = f"The model made {len(others):,} {self.made}s; the first {most} were asked."
            says = (*says, f"{cut} Say variants={most} or what else is wanted.")
        others = others[: self.variants or defaults.MAX_QUESTIONS]
        by_name = {f"{self.made} {number}": each for number, each in enumerate(others, start=1)}
        if self.include_original or not by_name:
            by_name = {"original": query, **by_name}
        return _Asked(by_name, says)

    def _legs(self, prepared: _Asked, asked: dict[str, Any]) -> list[LegCall]:
        arguments = {"filter": asked.get("filter")}
        return [
            with_k(LegCall(name, self.retriever, arguments, question), asked.get("k"))
            for name, question in prepared.by_name.items()
        ]

    def _fused(self, prepared: _Asked, answers: Sequence[Answer], asked: dict[str, Any]) -> Answer:
        names = list(prepared.by_name)
        weights = [1 / len(names)] * len(names)
        answer = fused(answers, weights, names, rrf_k=self.rrf_k, id_key=self.id_key)
        plan = [f"{name}: {question}" for name, question in prepared.by_name.items()]
        k = asked.get("k", self.k)
        full = told(answer, plan, prepared.degraded)
        return full if k is None else cut(full, k)
