"""LangChain's own conformance suite, for every retriever of the toolkit.

Each takes ``k`` when it is made and when it is called, by that name or, where the constructor
calls it so, as ``top_k``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_tests.integration_tests import RetrieversIntegrationTests

sys.path.insert(0, str(Path(__file__).parents[1]))
from toolkitlab import QUESTION, RETRIEVERS, Parts, make

from cormorant.langchain import retrievers


class Suite(RetrieversIntegrationTests):
    __test__ = False
    name: str
    parts: Parts

    @pytest.fixture(autouse=True)
    def _stores(self) -> Iterator[None]:
        type(self).parts = Parts()
        yield
        type(self).parts.close()

    @property
    def retriever_constructor(self) -> Any:
        """The class, over documents: some need them added before they can be asked."""
        return functools.partial(make, self.name, self.parts)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION

    @property
    def num_results_arg_name(self) -> str:
        return "top_k" if self.name == "HybridRetriever" else "k"


for _name in RETRIEVERS:
    globals()[f"Test{_name}"] = type(f"Test{_name}", (Suite,), {"__test__": True, "name": _name})


def test_every_retriever_that_takes_k_is_among_them() -> None:
    takes = {
        name
        for name in retrievers.__all__
        if {"k", "top_k"} & set(getattr(getattr(retrievers, name), "model_fields", ()))
    }
    assert takes == set(RETRIEVERS)
