"""What does a store learn of its legs, and what becomes of it?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cormorant
from cormorant import Query, data
from cormorant.cli.app import main
from cormorant.errors import ConfigError, CorruptionError, DimensionError
from cormorant.evaluate import mean_ndcg, parse_qrels
from cormorant.langchain.embeddings import LocalEmbeddings
from cormorant.search.fuse import LegScores
from cormorant.search.legs import Statistics
from cormorant.search.probes import FEWEST
from cormorant.search.trust import Weighing
from cormorant.store import RankingConfig, Store, Trust
from cormorant.store.config import StoreConfig
from cormorant.store.fingerprint import PROBES, Fingerprint

DIM = 256
SOME = 80


class Words:
    """An embedder of sorts: a text is the sum of its words' random vectors."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.known: dict[str, NDArray[np.float64]] = {}

    def __call__(self, text: str) -> NDArray[np.float64]:
        total = np.zeros(DIM)
        # Sorted: a set's order is another in each process, and words get vectors as they come.
        for word in sorted({word for word in re.findall(r"\w+", text.lower()) if len(word) > 4}):
            if word not in self.known:
                self.known[word] = self.rng.standard_normal(DIM)
            total += self.known[word]
        return total


def noise(count: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((count, DIM))


def corpus(vectors: Any = None, *, language: str = "en", count: int = SOME) -> Store:
    texts = dict(list(data.documents(language).items())[:count])
    embed = Words()
    store = cormorant.open(":memory:")
    store.add(
        {"id": id, "text": text, "vector": embed(text) if vectors is None else vectors[i]}
        for i, (id, text) in enumerate(texts.items())
    )
    return store


@pytest.fixture(scope="module")
def good() -> Store:
    store = corpus()
    store.learn_trust()
    return store


def fuse_note(store: Store, query: Query) -> str:
    (note,) = [n for n in store.search(query).plan if " candidates, vector " in n]
    return note


def a_question(**settings: Any) -> Query:
    text = next(iter(data.questions("en").values()))
    return Query(text=text, vector=Words()(text), **settings)


def test_vectors_that_say_what_the_texts_say_are_trusted(good: Store) -> None:
    assert good.trust is not None
    assert good.trust.records == SOME
    assert good.trust.share > 0.2


def test_noise_is_not_trusted() -> None:
    store = corpus(noise(SOME))
    assert store.learn_trust().share < 0.02


@pytest.mark.parametrize(("language", "count"), [("en", 240), ("zh", 80)])
def test_noise_does_not_pull_hybrid_below_text(language: str, count: int) -> None:
    store = corpus(noise(count), language=language, count=count)
    held = {record.id for record in store.records()}
    qrels = parse_qrels(data.judgements(), name="qrels.tsv")
    asked = [id for id in qrels if set(qrels[id]) & held]
    asked = asked[:: len(asked) // 100]
    vectors = noise(len(asked), seed=2)

    def found(**settings: Any) -> float:
        run = {
            id: [
                hit.id
                for hit in store.search(
                    Query(text=data.questions(language)[id], vector=vectors[i], **settings)
                )
            ]
            for i, id in enumerate(asked)
        }
        return mean_ndcg(run, {id: qrels[id] for id in asked})

    text = found(mode="text")
    assert found() < text - 0.003  # what is to be mended
    store.learn_trust()
    assert found() >= text - 0.003


def test_learning_twice_learns_the_same(good: Store) -> None:
    first = good.trust
    assert good.learn_trust() == first == good.trust


def test_a_query_that_says_wins_and_so_does_what_was_set(good: Store) -> None:
    assert "as learned from 80 records" in fuse_note(good, a_question())
    said = a_question(weights={"vector": 0.5, "text": 0.5})
    assert fuse_note(good, said).endswith("as the query says")
    assert fuse_note(good, a_question(fusion="rrf")).endswith("by default")
    good.set_ranking(RankingConfig(weights={"vector": 0.3, "text": 0.7}))
    try:
        assert fuse_note(good, a_question()).endswith("as set in the store")
    finally:
        good.set_ranking(None)


def test_weights_of_a_query_are_those_its_hits_were_fused_with(good: Store) -> None:
    result = good.search(a_question(explain=True))
    weights: dict[str, set[float]] = {}
    for hit in result:
        for name, leg in hit.legs.items():
            if leg.standard:
                weight = hit.contributions[name] / leg.standard
                weights.setdefault(name, set()).add(round(weight, 6))
    (vector,), (text,) = weights["vector"], weights["text"]
    assert vector + text == pytest.approx(1.0)
    step = next(step for step in result.hits[0].journey if step.stage == "fuse")
    assert f"vector {vector:g} ×" in step.says


def test_candidates_rank_as_the_search_does(good: Store) -> None:
    for text in list(data.questions("en").values())[:20]:
        query = Query(text=text, vector=Words(3)(text))
        candidates = good.candidates(query)
        ranked = candidates.rank(candidates.settled, top_k=10)
        assert [candidates.records[i].id for i in ranked] == [h.id for h in good.search(query)]


def test_optimize_learns_when_records_came_and_not_otherwise(tmp_path: Path) -> None:
    embed = Words()
    rows = [
        {"id": id, "text": text, "vector": embed(text)}
        for id, text in list(data.documents("en").items())[:60]
    ]
    with cormorant.open(tmp_path / "kb") as store:
        store.add(rows[:20])
        assert store.trust is None
        store.optimize()
        learned = store.trust
        assert learned is not None
        assert learned.records == 20
        before = store.stats()
        assert before.unfolded == 0
        store.optimize()
        assert store.stats().lsn == before.lsn
        store.add(rows[20:30])
        assert fuse_note(store, a_question()).startswith("fuse: z")
        assert store.stats().trust_doubt is None
        store.add(rows[30:])
        doubt = store.stats().trust_doubt
        assert doubt is not None
        assert "40 of 60" in doubt
        result = store.search(a_question())
        assert any(note.startswith("weights: what was learned is not used") for note in result.plan)
        assert fuse_note(store, a_question()).endswith("by default")
        store.optimize()
        assert store.stats().trust_doubt is None
        assert store.trust is not None
        assert store.trust.records == 60
    with cormorant.open(tmp_path / "kb") as store:
        assert store.trust is not None
        store.forget_trust()
        assert store.trust is None


def test_learned_from_other_vectors_is_not_used(good: Store) -> None:
    rng = np.random.default_rng(0)

    def print_of(name: str) -> Fingerprint:
        return Fingerprint(name=name, dim=4, vectors=rng.random((len(PROBES), 4), np.float32))

    store = cormorant.open(":memory:")
    store.set_embedder("one", print_of("one"))
    store.add([{"id": str(i), "text": f"t{i} t{i + 1}", "vector": noise(9)[i]} for i in range(9)])
    store.learn_trust()
    store.delete(filter={})
    store.set_embedder("other", print_of("other"))
    doubt = store.stats().trust_doubt
    assert doubt is not None
    assert "other vectors" in doubt
    assert good.stats().trust_doubt is None


def test_thin_evidence_moves_little() -> None:
    some, many = (Trust(0.0, 0.3, n, 0).share for n in (3, 300))
    assert many < 0.01
    assert 0.2 < some < 0.5
    assert Trust(0.0, 0.0, 0, 0).share == 0.5


@pytest.mark.parametrize(
    "records",
    [
        [],
        [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}],
        [{"id": "a", "vector": [1.0, 0.0]}, {"id": "b", "vector": [0.0, 1.0]}],
        [{"id": str(i), "text": "", "vector": [1.0, float(i)]} for i in range(5)],
        [{"id": str(i), "text": "same words", "vector": [1.0, 1.0]} for i in range(5)],
    ],
    ids=["empty", "no vectors", "no texts", "blank texts", "all alike"],
)
def test_where_there_is_nothing_to_learn_the_legs_count_alike(
    records: list[dict[str, Any]],
) -> None:
    store = cormorant.open(":memory:", dim=2)
    store.add(records)
    assert store.learn_trust().share == pytest.approx(0.5)
    store.optimize()


def view(scores: list[float], ranks: list[int]) -> LegScores:
    return LegScores(1.0, np.array(scores, np.float32), np.array(ranks), Statistics(0.0, 1.0))


def test_a_query_on_which_the_legs_disagree_trusts_the_vectors_less() -> None:
    trust = Trust(0.4, 0.3, 200, 0)
    text = view([8.0, 7.0, 0.0, 0.0], [1, 2, 0, 0])
    agree = trust.weigh(view([4.0, 3.0, 0.0, 0.0], [1, 2, 0, 0]), text, known=1.0).weights
    differ = trust.weigh(view([0.0, 0.0, 4.0, 3.0], [0, 0, 1, 2]), text, known=1.0).weights
    assert agree["vector"] > 0.5
    assert 0 < differ["vector"] < 0.2
    assert agree["vector"] + agree["text"] == 1.0


def test_a_query_the_texts_know_nothing_of_trusts_the_vectors_more() -> None:
    trust = Trust(0.3, 0.3, 200, 0)
    vector, nothing = view([4.0, 3.0], [1, 2]), view([0.0, 0.0], [0, 0])
    assert trust.weigh(vector, nothing, known=0.0).weights["vector"] == pytest.approx(0.56)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vector": -0.1},
        {"text": 2.0},
        {"records": 1.5},
        {"newest": -1},
        {"vector": float("nan")},
        {"fingerprint": "x"},
        {"scripts": {"LATIN": 1.5}},
        {"heard": -0.1},
        {"probes": -1},
    ],
)
def test_what_could_not_have_been_learned_is_damage(wrong: dict[str, Any]) -> None:
    sound = Trust(0.3, 0.2, 10, 10).to_json()
    assert Trust.from_json(sound) == Trust(0.3, 0.2, 10, 10)
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Trust.from_json({**sound, **wrong})
    with pytest.raises(CorruptionError, match="trust"):
        StoreConfig.from_json({"trust": {**sound, **wrong}})
    with pytest.raises(CorruptionError, match="trust"):
        StoreConfig.from_json({"trust": {"share": 1}})


def test_exact_is_not_claimed_where_a_wider_search_would_weigh_otherwise(good: Store) -> None:
    narrow = good.search(a_question(top_k=1, fetch_k=5))
    assert not narrow.exact
    assert good.search(a_question(top_k=1, fetch_k=SOME)).exact


def test_info_says_what_was_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kb = tmp_path / "kb"
    with cormorant.open(kb) as store:
        store.add(
            {"id": id, "text": text, "vector": Words()(text)}
            for id, text in list(data.documents("en").items())[:30]
        )
    assert main(["info", str(kb)]) == 0
    assert "nothing was learned yet" in capsys.readouterr().out
    with cormorant.open(kb) as store:
        store.learn_trust()
    assert main(["info", str(kb)]) == 0
    assert "learned from 30 records: vector 0." in capsys.readouterr().out
    assert main(["info", str(kb), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trust"]["records"] == 30
    assert told["trust"]["doubt"] is None
    assert told["ranking"] is None


def test_an_embedder_that_understands_no_question_is_not_heard() -> None:
    store = corpus(count=240)
    alike = store.learn_trust()
    embed = _same_words()
    understood = store.learn_trust(lambda text: embed(text) + 1e-3)  # never a vector of zeros
    assert understood.heard == 1.0
    assert understood.probes > 2 * FEWEST
    assert understood.share == alike.share
    rng = np.random.default_rng(5)
    deaf = store.learn_trust(lambda _: rng.standard_normal(DIM))
    assert deaf.heard is not None
    assert deaf.heard < 0.3
    assert deaf.share < 0.3 * alike.share


def _same_words() -> Words:
    """The embedder of :func:`corpus`, after it embedded the corpus."""
    embed = Words()
    for text in list(data.documents("en").values())[:240]:
        embed(text)
    return embed


def test_an_embedder_may_be_an_object_with_embed_query_and_nothing_else(good: Store) -> None:
    class Model:
        def __init__(self) -> None:
            self.asked: list[str] = []

        def embed_query(self, text: str) -> list[float]:
            self.asked.append(text)
            return [1.0] * DIM

    model, store = Model(), corpus()
    store.learn_trust(model)
    assert 0 < len(model.asked) <= 96
    assert len(set(model.asked)) == len(model.asked)  # each embedded once
    with pytest.raises(ConfigError, match="embed_query; got int"):
        good.learn_trust(3)
    with pytest.raises(DimensionError):
        store.learn_trust(lambda _: [1.0, 2.0])


def test_what_an_embedder_understands_stays_known_while_it_is_the_same() -> None:
    rng = np.random.default_rng(0)
    store = cormorant.open(":memory:")
    vectors = rng.random((len(PROBES), DIM), np.float32)
    store.set_embedder("one", Fingerprint(name="one", dim=DIM, vectors=vectors))
    embed = Words()
    texts = list(data.documents("en").items())[:SOME]
    store.add({"id": id, "text": text, "vector": embed(text)} for id, text in texts)
    first = store.learn_trust(lambda _: rng.standard_normal(DIM))
    assert store.learn_trust() == first
    named_nothing = corpus()
    assert named_nothing.learn_trust(lambda _: rng.standard_normal(DIM)).heard is not None
    assert named_nothing.learn_trust().heard is None


def test_too_few_records_to_ask_say_nothing_of_the_embedder() -> None:
    store = corpus(count=10)
    assert store.learn_trust(lambda _: [1.0] * DIM).heard is None


def test_records_in_several_scripts_are_noticed() -> None:
    english, chinese = data.documents("en"), data.documents("zh")
    ids, embed = list(english)[:SOME], Words()
    store = cormorant.open(":memory:")
    store.add(
        {"id": id, "text": (chinese if i % 2 else english)[id], "vector": embed(english[id])}
        for i, id in enumerate(ids)
    )
    trust = store.learn_trust()
    assert set(trust.scripts) == {"CJK", "LATIN"}
    assert 0.4 < trust.foreign < 0.6
    assert corpus().learn_trust().foreign == 0.0


def test_where_several_scripts_are_stored_the_legs_need_not_agree() -> None:
    """The vector leg's best are in another script, and share no term with the query."""
    vector, text = (
        view([0.0, 0.0, 4.0, 3.0], [0, 0, 1, 2]),
        view([8.0, 7.0, 0.0, 0.0], [1, 2, 0, 0]),
    )
    beyond = np.array([False, False, True, True])
    scripts = {"LATIN": 0.7, "CJK": 0.3}

    def weighing(trust: Trust) -> Weighing:
        return trust.weigh(vector, text, known=1.0, beyond=beyond)

    one_script = Trust(0.3, 0.3, 200, 0).weigh(vector, text, known=1.0)
    assert one_script.weights["vector"] < 0.2
    assert one_script.imagined == 0.0
    several = weighing(Trust(0.3, 0.3, 200, 0, scripts=scripts))
    assert several.weights["vector"] == pytest.approx(0.5)
    assert several.imagined == pytest.approx(0.9)
    deaf = weighing(Trust(0.3, 0.3, 200, 0, scripts=scripts, heard=0.0, probes=96))
    noise = weighing(Trust(0.0, 0.3, 2000, 0, scripts=scripts))
    for nothing in (deaf, noise):
        assert nothing.weights["vector"] < 0.02
        assert nothing.imagined < 0.02


def test_questions_of_noise_are_told_by_records_in_their_own_script() -> None:
    vector = view([0.0, 0.0, 4.0, 3.0, 5.0], [0, 0, 2, 3, 1])
    text = view([8.0, 7.0, 0.0, 0.0, 0.0], [1, 2, 0, 0, 0])
    beyond = np.array([False, False, False, False, True])
    trust = Trust(0.3, 0.3, 200, 0, scripts={"LATIN": 0.7, "CJK": 0.3})
    noise = trust.weigh(vector, text, known=1.0, beyond=beyond)
    assert noise.weights["vector"] == pytest.approx(0.5)  # as if nobody had learned anything
    assert noise.imagined < 0.1
    understood = replace(trust, heard=1.0, probes=96)
    assert understood.weigh(vector, text, known=1.0, beyond=beyond).imagined == pytest.approx(0.9)


def test_what_an_earlier_release_learned_is_read() -> None:
    stored = {"vector": 0.3, "text": 0.2, "records": 10, "newest": 10, "fingerprint": None}
    assert Trust.from_json(stored) == Trust(0.3, 0.2, 10, 10)


def test_a_store_of_two_scripts_finds_what_only_the_other_one_says() -> None:
    """English questions whose answers are stored in Chinese, beside English records."""
    english, chinese, model = data.documents("en"), data.documents("zh"), LocalEmbeddings()
    ids = list(english)[:SOME]
    texts = [(chinese if i % 2 else english)[id] for i, id in enumerate(ids)]
    store = cormorant.open(":memory:")
    store.add(
        {"id": id, "text": text, "vector": vector}
        for id, text, vector in zip(ids, texts, model.embed_documents(texts), strict=True)
    )
    qrels = parse_qrels(data.judgements(), name="qrels.tsv")
    asked = {
        qid: Query(text=text, vector=model.embed_query(text))
        for qid, text in data.questions("en").items()
        if set(qrels.get(qid, ())) & set(ids[1::2])
    }

    def quality(**settings: Any) -> float:
        run = {
            qid: [hit.id for hit in store.search(replace(query, **settings))]
            for qid, query in asked.items()
        }
        return mean_ndcg(run, {qid: qrels[qid] for qid in asked})

    before, by_vector = quality(), quality(mode="vector")
    store.learn_trust()
    assert before < by_vector - 0.1
    assert quality() > by_vector - 0.05
    found = [
        (query, hit)
        for query in asked.values()
        for hit in store.search(query)
        if hit.id in ids[1::2]
    ]
    for query, hit in found[:5]:
        standards = {name: leg.standard for name, leg in hit.legs.items()}
        assert standards["text"] >= 0.9 * standards["vector"] - 1e-9
        steps = store.explain(query, hit.id).steps
        assert any("cannot read it" in step.says for step in steps)
