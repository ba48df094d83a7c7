"""Are words found, in any language, among documents that come and go?"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

sys.path.insert(0, str(Path(__file__).parents[1]))
from retrieverlab import doc, texts

import cormorant
from cormorant.errors import FilterError, QueryError, UsageError
from cormorant.langchain import Cormorant
from cormorant.langchain.retrievers import BM25Retriever


def words(text: str) -> list[str]:
    return text.split()


class TestDefectsThatMustNotReturn:
    def test_chinese_is_scored(self) -> None:
        made = BM25Retriever.from_texts(["鸬鹚潜入水中捕鱼", "发票三十天内到期", "一艘船"])
        assert texts(made.invoke("捕鱼")) == ["鸬鹚潜入水中捕鱼"]
        assert made.retrieve("发票").hits[0].score > 0

    def test_case_and_punctuation_do_not_matter(self) -> None:
        made = BM25Retriever.from_texts(["Fish!", "a boat"])
        assert texts(made.invoke("fish")) == ["Fish!"]

    def test_no_match_is_nothing(self) -> None:
        assert BM25Retriever.from_texts(["a fish", "a boat"]).invoke("whale") == []

    async def test_an_empty_corpus_is_no_error(self) -> None:
        for made in (BM25Retriever.from_texts([]), BM25Retriever.from_documents([])):
            assert made.invoke("fish") == []
            assert await made.ainvoke("fish") == []

    def test_two_documents_have_an_idf(self) -> None:
        made = BM25Retriever.from_texts(["a fish", "a boat"])
        assert [hit.score > 0 for hit in made.retrieve("fish").hits] == [True]

    def test_generators_are_taken(self) -> None:
        made = BM25Retriever.from_texts((text for text in ["a fish"]), ({"n": n} for n in [1]))
        assert made.invoke("fish") == [doc("a fish", n=1)]
        assert len(BM25Retriever.from_documents(d for d in [doc("a fish")]).docs) == 1

    def test_what_is_returned_is_a_copy(self) -> None:
        held = doc("a fish", tags=["x"])
        made = BM25Retriever.from_documents([held])
        made.invoke("fish")[0].metadata["tags"].append("y")
        made.docs[0].metadata["tags"].append("z")
        assert held.metadata == made.docs[0].metadata == {"tags": ["x"]}


class TestIds:
    def test_are_kept(self) -> None:
        made = BM25Retriever.from_documents([doc("a fish", "1"), doc("two fish"), doc("fish", "3")])
        assert [d.id for d in made.docs] == ["1", None, "3"]
        assert {d.id for d in made.invoke("fish")} == {"1", None, "3"}
        assert {hit.id for hit in made.retrieve("fish")} == {"1", "", "3"}

    def test_can_be_given_with_texts(self) -> None:
        made = BM25Retriever.from_texts(["a fish", "a boat"], ids=["1", "2"])
        assert [d.id for d in made.docs] == ["1", "2"]
        with pytest.raises(UsageError, match="number of ids"):
            BM25Retriever.from_texts(["a", "b"], ids=["1"])

    def test_two_documents_may_be_equal(self) -> None:
        assert len(BM25Retriever.from_texts(["a fish", "a fish"]).invoke("fish")) == 2


class TestChanges:
    def test_add_replace_and_delete(self) -> None:
        made = BM25Retriever.from_texts(["a fish"], ids=["1"])
        assert made.add_documents([doc("two fish", "2", year=2026)]) == ["2"]
        assert texts(made.invoke("fish")) == ["a fish", "two fish"]
        made.add_texts(["a boat"], ids=["1"])
        assert texts(made.invoke("fish")) == ["two fish"]
        (unnamed,) = made.add_texts(["more fish"])
        assert made.delete(filter={"year": 2026})
        assert texts(made.invoke("fish")) == ["more fish"]
        assert made.delete([unnamed])
        assert made.invoke("fish") == []

    def test_one_document_alone_is_refused(self) -> None:
        made = BM25Retriever.from_texts([])
        with pytest.raises(UsageError, match="list of Documents"):
            made.add_documents(doc("a"))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="list of strings"):
            made.add_texts("a fish")


class TestAsking:
    def test_k_is_4_and_can_be_set(self) -> None:
        made = BM25Retriever.from_texts([f"fish {n}" for n in range(9)])
        assert (len(made.invoke("fish")), len(made.invoke("fish", k=7))) == (4, 7)
        made.k = 2
        assert len(made.invoke("fish")) == 2

    async def test_filters_are_anded(self) -> None:
        documents = [doc(f"fish {n}", year=2020 + n, even=n % 2 == 0) for n in range(9)]
        made = BM25Retriever.from_documents(documents, filter={"even": True}, k=9)
        assert {
            d.metadata["year"] for d in made.invoke("fish", filter={"year": {"$gt": 2024}})
        } == {
            2026,
            2028,
        }
        assert len(await made.ainvoke("fish", filter=lambda d: d.metadata["year"] < 2023)) == 2
        with pytest.raises(FilterError):
            made.invoke("fish", filter={"year": {"$gtt": 1}})

    def test_a_threshold_is_a_relevance(self) -> None:
        made = BM25Retriever.from_texts(["fish", "fish " + "boat " * 50])
        weakest = min(hit.relevance for hit in made.retrieve("fish"))
        assert len(made.invoke("fish", score_threshold=weakest + 0.01)) == 1
        assert len(made.retrieve("fish", score_threshold=0)) == 2

    def test_scores_tell_the_terms_leg_and_journey(self) -> None:
        (hit,) = BM25Retriever.from_texts(["a fish", "a boat"], ids=["1", "2"]).retrieve("fish")
        assert hit.score == hit.legs["text"].score > 0
        assert [step.stage for step in hit.journey] == ["text"]

    def test_the_scope_of_a_request_narrows(self) -> None:
        made = BM25Retriever.from_documents([doc("fish", t="acme"), doc("fish", t="other")])
        config: Any = {"configurable": {"scope": {"t": "acme"}}}
        assert [d.metadata["t"] for d in made.invoke("fish", config)] == ["acme"]

    def test_a_question_without_words_is_refused(self) -> None:
        with pytest.raises(QueryError, match="no term"):
            BM25Retriever.from_texts(["a fish"]).invoke("?!")


class TestSettings:
    def test_parameters_of_the_formula(self) -> None:
        plain = BM25Retriever.from_texts(["fish fish", "a boat"])
        set_ = BM25Retriever.from_texts(["fish fish", "a boat"], bm25_params={"k1": 5.0, "b": 0.0})
        assert set_.retrieve("fish").hits[0].score < plain.retrieve("fish").hits[0].score
        with pytest.raises(UsageError, match="needs no epsilon"):
            BM25Retriever.from_texts(["fish"], bm25_params={"epsilon": 0.25})
        with pytest.raises(UsageError):
            BM25Retriever.from_texts(["fish"], bm25_params={"b": 2.0})

    def test_a_function_can_take_the_analyzers_place(self) -> None:
        made = BM25Retriever.from_texts(["Fish!", "fish", "a boat"], preprocess_func=words)
        assert texts(made.invoke("fish")) == ["fish"]
        assert texts(made.invoke("Fish! fish")) == ["Fish!", "fish"]
        assert texts(made.invoke("a")) == ["a boat"]
        made.add_texts(["fish fish"])
        assert len(made.invoke("fish")) == 2
        with pytest.raises(UsageError, match="list of strings"):
            BM25Retriever.from_texts(["x"], preprocess_func=lambda text: [1])  # type: ignore[list-item]
        for letters in ("fish", None):  # a string's letters would pass for words
            with pytest.raises(UsageError, match="must return a list of strings; it returned"):
                BM25Retriever.from_texts(["x"], preprocess_func=lambda text, said=letters: said)

    def test_a_function_cannot_be_kept_on_disk(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="cannot be kept"):
            BM25Retriever(path=tmp_path / "kb", preprocess_func=words)
        assert not (tmp_path / "kb").exists()

    @pytest.mark.parametrize(
        "settings", [{"k": 0}, {"score_threshold": 2}, {"top_k": 3}, {"filter": {"a": {"$x": 1}}}]
    )
    def test_wrong_ones_are_refused(self, settings: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            BM25Retriever.from_texts(["a fish"], **settings)

    def test_repr_shows_no_text(self) -> None:
        assert "fish" not in repr(BM25Retriever.from_texts(["a fish"]))


class TestPersistence:
    def test_a_folder_keeps_the_documents(self, tmp_path: Path) -> None:
        made = BM25Retriever.from_texts(["a fish", "a boat"], ids=["1", None], path=tmp_path / "kb")
        made.vectorstore.close()
        again = BM25Retriever(path=tmp_path / "kb", k=2)
        assert again.invoke("fish") == [doc("a fish", "1")]
        assert [d.id for d in again.docs] == ["1", None]
        again.vectorstore.close()

    def test_an_open_store_can_be_given(self) -> None:
        with cormorant.open(":memory:") as store:
            made = BM25Retriever(store=store.scope(t="acme"))
            made.add_texts(["a fish"])
            assert store.count({"t": "acme"}) == 1
            assert len(made.invoke("fish")) == 1
            assert BM25Retriever(store=store.scope(t="other")).invoke("fish") == []
            with pytest.raises(UsageError, match="Give one of"):
                BM25Retriever(store=store, path="kb")

    def test_so_can_a_vector_store(self) -> None:
        fake = DeterministicFakeEmbedding(size=4)
        with Cormorant.from_texts(["a fish", "a boat"], fake) as vs:
            assert texts(BM25Retriever(vectorstore=vs).invoke("fish")) == ["a fish"]
            with pytest.raises(UsageError, match="already open"):
                BM25Retriever(vectorstore=vs, language="german")
        with pytest.raises(UsageError, match="must be a Cormorant"):
            BM25Retriever(vectorstore="kb")

    def test_pickles_in_memory(self) -> None:
        made = BM25Retriever.from_documents(
            [doc("a fish", "1", n=1), doc("two fish")], k=2, bm25_params={"k1": 2.0}
        )
        again = pickle.loads(pickle.dumps(made))
        assert again.docs == made.docs
        assert again.k == 2
        assert repr(again.retrieve("fish").hits) == repr(made.retrieve("fish").hits)
        by_words = BM25Retriever.from_texts(["Fish!"], preprocess_func=words)
        assert texts(pickle.loads(pickle.dumps(by_words)).invoke("Fish!")) == ["Fish!"]

    def test_a_folder_is_opened_again(self, tmp_path: Path) -> None:
        made = BM25Retriever.from_texts(["a fish"], path=tmp_path / "kb", k=2)
        again = pickle.loads(pickle.dumps(made))
        made.add_texts(["two fish"])
        assert len(again.invoke("fish")) == 2
        assert again.k == 2
        made.vectorstore.close()
        again.vectorstore.close()

    def test_nor_is_a_store_with_vectors(self) -> None:
        with (
            Cormorant.from_texts(["a fish"], DeterministicFakeEmbedding(size=4)) as vs,
            pytest.raises(UsageError, match="left behind"),
        ):
            pickle.dumps(BM25Retriever(vectorstore=vs))
