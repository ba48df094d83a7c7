"""Do embeddings filter and de-duplicate as they should, each text embedded once?"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import AwaitedCompass, Compass, found, ids

from cormorant.errors import EmbeddingError, QueryError, UsageError
from cormorant.langchain.document_transformers import EmbeddingsRedundantFilter
from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    EmbeddingsFilter,
    RerankError,
)

ANGLES = {"north": 90.0, "east": 0.0, "north-east": 45.0, "west": 180.0, "?": 0.0}


def ask(*texts):
    return {"query": "?", "documents": found(*(texts or ("north", "west", "east", "north-east")))}


class TestFilter:
    def test_the_nearest_come_first_with_their_cosines(self):
        out = EmbeddingsFilter(embeddings=Compass(**ANGLES), k=2).invoke(ask())
        assert ids(out) == ["d2", "d3"]
        assert type(out[0]) is Document
        assert [round(of(document).rerank_score, 3) for document in out] == [1.0, 0.707]
        assert [round(of(document).relevance, 3) for document in out] == [1.0, 0.707]

    def test_with_a_threshold_alone_the_nearest_come_first_too(self):
        kept = EmbeddingsFilter(embeddings=Compass(**ANGLES), k=None, similarity_threshold=0.1)
        assert ids(kept.invoke(ask())) == ["d2", "d3"]

    def test_a_similarity_equal_to_the_threshold_is_kept(self):
        # Exact in binary: the cosine of a vector with itself.
        kept = EmbeddingsFilter(embeddings=Compass(**ANGLES), k=None, similarity_threshold=1.0)
        assert ids(kept.invoke(ask("east", "west"))) == ["d0"]

    def test_k_and_threshold_hold_together(self):
        kept = EmbeddingsFilter(embeddings=Compass(**ANGLES), k=3, similarity_threshold=0.9)
        assert ids(kept.invoke(ask())) == ["d2"]

    def test_top_n_of_a_call_comes_before_k(self):
        assert ids(EmbeddingsFilter(embeddings=Compass(**ANGLES)).invoke(ask(), top_n=1)) == ["d2"]

    def test_no_documents_embed_nothing(self):
        compass = Compass(**ANGLES)
        assert EmbeddingsFilter(embeddings=compass).invoke({"query": "?", "documents": []}) == []
        assert compass.queries == []

    def test_equal_similarities_leave_the_earlier_order(self):
        out = EmbeddingsFilter(embeddings=Compass(**ANGLES)).invoke(ask("north", "east", "east"))
        assert ids(out) == ["d1", "d2", "d0"]

    def test_equal_texts_are_embedded_once(self):
        compass = Compass(**ANGLES)
        EmbeddingsFilter(embeddings=compass).invoke(ask("north", "east", "east", "north"))
        assert compass.embedded == ["north", "east"]

    def test_a_similarity_of_ones_own(self):
        def by_distance(left, right):
            return -np.linalg.norm(np.asarray(left)[:, None] - np.asarray(right)[None], axis=-1)

        kept = EmbeddingsFilter(embeddings=Compass(**ANGLES), similarity_fn=by_distance, k=1)
        out = kept.invoke(ask())
        assert ids(out) == ["d2"]
        assert of(out[0]).relevance == 0.7  # the search's: this scale is unknown

    @pytest.mark.parametrize("similarities", [[[1.0]], [[1.0, math.nan, 0.5, 0.2]]])
    def test_similarities_that_are_none_are_an_error(self, similarities):
        kept = EmbeddingsFilter(
            embeddings=Compass(**ANGLES), similarity_fn=lambda *_: np.array(similarities)
        )
        with pytest.raises(RerankError):
            kept.invoke(ask())

    def test_it_needs_k_or_a_threshold(self):
        with pytest.raises(QueryError, match="needs k or similarity_threshold"):
            EmbeddingsFilter(embeddings=Compass(), k=None)

    @pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 1.5}, {"similarity_threshold": "high"}])
    def test_wrong_settings_are_refused(self, wrong):
        with pytest.raises(QueryError):
            EmbeddingsFilter(embeddings=Compass(), **wrong)


class TestRedundant:
    def test_of_two_twins_the_better_ranked_stays(self):
        compass = Compass(best=0.0, other=90.0, twin=1.0)
        out = EmbeddingsRedundantFilter(embeddings=compass).transform_documents(
            found("best", "other", "twin")
        )
        assert ids(out) == ["d0", "d1"]
        assert of(out[0]).score == 1.0
        assert of(out[0]).journey[-1].detail == {"twins": ["d2"]}
        assert "stands for d2" in of(out[0]).journey[-1].says

    def test_a_document_like_a_dropped_one_but_not_like_a_kept_one_stays(self):
        # 0° drops 15°; 30° is like 15° and not like 0°.
        compass = Compass(a=0.0, b=15.0, c=30.0)
        filter = EmbeddingsRedundantFilter(embeddings=compass, similarity_threshold=0.95)
        assert ids(filter.transform_documents(found("a", "b", "c"))) == ["d0", "d2"]

    def test_equal_texts_are_twins_at_any_threshold_below_one(self):
        compass = Compass(a=33.0)
        filter = EmbeddingsRedundantFilter(embeddings=compass, similarity_threshold=0.999)
        assert ids(filter.transform_documents(found("a", "a", "a"))) == ["d0"]
        assert compass.embedded == ["a"]

    def test_a_threshold_of_one_keeps_all(self):
        filter = EmbeddingsRedundantFilter(embeddings=Compass(a=33.0), similarity_threshold=1.0)
        assert ids(filter.transform_documents(found("a", "a"))) == ["d0", "d1"]

    @settings(max_examples=60, deadline=None)
    @given(
        angles=st.lists(st.integers(0, 359), min_size=1, max_size=12),
        threshold=st.sampled_from([0.5, 0.9, 0.99]),
    )
    def test_kept_are_unlike_each_other_and_dropped_are_like_a_better_kept_one(
        self, angles, threshold
    ):
        texts = [f"t{number}" for number in range(len(angles))]
        compass = Compass(**dict(zip(texts, map(float, angles), strict=True)))
        filter = EmbeddingsRedundantFilter(embeddings=compass, similarity_threshold=threshold)
        kept = [int(id[1:]) for id in ids(filter.transform_documents(found(*texts)))]
        assert kept == sorted(kept)

        def alike(one, other):
            return math.cos(math.radians(angles[one] - angles[other])) - threshold

        for place in range(len(angles)):
            better = [alike(place, other) for other in kept if other < place]
            if place in kept:
                assert all(margin <= 1e-6 for margin in better)
            else:
                assert any(margin >= -1e-6 for margin in better)

    def test_a_similarity_of_ones_own_must_fit(self):
        filter = EmbeddingsRedundantFilter(
            embeddings=Compass(a=0.0, b=1.0), similarity_fn=lambda *_: [[math.nan]]
        )
        with pytest.raises(RerankError, match="similarity_fn must return 1 finite"):
            filter.transform_documents(found("a", "b"))

    def test_wrong_settings_are_refused(self):
        for threshold in ("high", None, math.nan):
            with pytest.raises(QueryError, match="similarity_threshold"):
                EmbeddingsRedundantFilter(embeddings=Compass(), similarity_threshold=threshold)
        with pytest.raises(UsageError, match="does not take 'keep'"):
            EmbeddingsRedundantFilter(embeddings=Compass()).transform_documents([], keep=1)


class TestBoth:
    def stages(self, embeddings):
        return DocumentCompressorPipeline(
            transformers=[
                EmbeddingsRedundantFilter(embeddings=embeddings),
                EmbeddingsFilter(embeddings=embeddings, k=2),
            ]
        )

    async def test_a_pipeline_embeds_each_text_once(self):
        compass = Compass(**ANGLES)
        assert ids(self.stages(compass).invoke(ask())) == ["d2", "d3"]
        assert compass.embedded == ["north", "west", "east", "north-east"]
        assert ids(await self.stages(compass).ainvoke(ask())) == ["d2", "d3"]
        assert len(compass.embedded) == 8, "nothing is kept from one run to the next"

    def test_two_embedders_in_a_pipeline_do_not_share_vectors(self):
        one, other = Compass(**ANGLES), Compass(**{**ANGLES, "north": 0.0, "east": 90.0})
        pipeline = DocumentCompressorPipeline(
            transformers=[
                EmbeddingsRedundantFilter(embeddings=one),
                EmbeddingsFilter(embeddings=other, k=1),
            ]
        )
        assert ids(pipeline.invoke(ask())) == ["d0"]

    async def test_async_awaits_the_embedders_own_methods(self):
        compass = AwaitedCompass(**ANGLES)
        assert ids(await self.stages(compass).ainvoke(ask())) == ["d2", "d3"]

    def test_what_the_embedder_gets_wrong_is_an_error(self):
        class Short(Compass):
            def embed_documents(self, texts):
                return super().embed_documents(texts)[:-1]

        class Broken(Compass):
            def embed_documents(self, texts):
                return [[math.nan, 1.0] for _ in texts]

        class Down(Compass):
            def embed_documents(self, texts):
                raise ConnectionError("no route")

        for kind, says in ((Short, "3 vectors for 4"), (Broken, "NaN"), (Down, "no route")):
            for make in (EmbeddingsFilter, EmbeddingsRedundantFilter):
                with pytest.raises(EmbeddingError, match=says):
                    make(embeddings=kind(**ANGLES)).invoke(ask())

    def test_what_is_no_embedder_is_refused(self):
        for make in (EmbeddingsFilter, EmbeddingsRedundantFilter):
            with pytest.raises(UsageError, match="must be a LangChain Embeddings"):
                make(embeddings="model")

    def test_a_vector_of_zeros_is_like_nothing(self):
        class Zero(Compass):
            def _vector(self, text):
                return [0.0, 0.0] if text == "north" else super()._vector(text)

        out = EmbeddingsFilter(embeddings=Zero(**ANGLES)).invoke(ask())
        assert {document.id: of(document).score for document in out}["d0"] == 0.0
