"""Calibration: curves that never fall, probabilities that hold, thresholds that mean them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cormorant
from cormorant import Query
from cormorant.errors import ConfigError, QueryError, ScopeError, UsageError
from cormorant.evaluate import calibrate
from cormorant.evaluate.calibration import isotonic, quality
from cormorant.store import Calibration, Curve, Fingerprint

WORDS = [f"word{i}" for i in range(80)]


def world(*, noise: float, seed: int = 3, count: int = 150, dim: int = 16):
    """A store, questions near their answers by ``noise``, and judgements."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((count, dim))
    texts = [" ".join(rng.choice(WORDS, 10)) for _ in range(count)]
    store = cormorant.open(":memory:")
    store.add({"id": f"d{i}", "text": texts[i], "vector": made[i]} for i in range(count))
    queries = {
        f"q{i}": Query(
            text=" ".join([*rng.choice(texts[i].split(), 4), *rng.choice(WORDS, 2)]),
            vector=made[i] + noise * rng.standard_normal(dim),
        )
        for i in range(count)
    }
    return store, queries, {f"q{i}": {f"d{i}": 1} for i in range(count)}


def print_of(seed, name):
    rng = np.random.default_rng(seed)
    return Fingerprint(name=name, dim=16, vectors=rng.standard_normal((8, 16)))


def slow_isotonic(x, y):
    """By definition: at each place the largest, over where to begin, of the least mean onwards."""
    places = sorted(set(x))
    at = [[answer for place, answer in zip(x, y, strict=True) if place == p] for p in places]
    out = []
    for i in range(len(places)):
        best = -1.0
        for j in range(i + 1):
            least = min(
                np.mean([a for each in at[j : k + 1] for a in each]) for k in range(i, len(places))
            )
            best = max(best, float(least))
        out.append(best)
    return places, out


points = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=14)


class TestIsotonic:
    @settings(max_examples=150, deadline=None)
    @given(points)
    def test_pools_are_those_of_the_definition(self, given_points):
        """The max-min formula of Barlow et al. says which places share a value."""
        x = np.array([p for p, _ in given_points], np.float64)
        y = np.array([a for _, a in given_points], np.bool_)
        places, wanted = slow_isotonic(x.tolist(), y.tolist())
        steps = isotonic(x, y)
        got = steps.at(np.array(places))
        highest = 0.0
        for level in sorted(set(wanted)):
            pool = [i for i, value in enumerate(wanted) if value == level]
            inside = np.isin(x, np.array(places)[pool])
            half = (y[inside].sum() + 0.5) / (inside.sum() + 1)
            highest = max(highest, half)
            assert got[pool] == pytest.approx(highest)
        assert (np.diff(steps.x) > 0).all()

    def test_few_answers_never_say_certain(self):
        steps = isotonic(np.array([0.0, 1.0, 2.0]), np.array([False, True, True]))
        assert steps.x.tolist() == [0.0, 1.0, 2.0]
        assert steps.y.tolist() == [0.25, 2.5 / 3, 2.5 / 3]

    def test_a_known_curve_is_found(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(-4, 4, 40_000)
        steps = isotonic(x, rng.random(40_000) < 1 / (1 + np.exp(-x)))
        at = np.linspace(-3, 3, 13)
        assert np.abs(steps.at(at) - 1 / (1 + np.exp(-at))).max() < 0.05


class TestQuality:
    def test_by_hand(self):
        said = np.array([0.9, 0.9, 0.1, 0.0])
        told = quality(said, np.array([True, False, False, False]), share=0.25, questions=2)
        assert told.brier == pytest.approx((0.01 + 0.81 + 0.01) / 4)
        assert told.brier_without == pytest.approx((0.75**2 + 3 * 0.25**2) / 4)
        assert told.at(0.8).kept == 1.0
        assert told.at(0.8).precision == 0.5
        assert told.at(0.8).recall == 1.0
        assert [(b.low, b.count, b.found) for b in told.bins] == [
            (0.0, 1, 0.0),
            (0.05, 1, 0.0),
            (0.9, 2, 0.5),
        ]

    def test_nothing_kept(self):
        told = quality(np.array([0.1]), np.array([False]), share=0.0, questions=1)
        assert told.at(0.5).precision is None
        assert told.at(0.5).recall is None
        assert told.skill == 0.0


class TestCalibrate:
    def test_every_mode_gets_probabilities_that_hold_on_other_questions(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            done = calibrate(store, queries, qrels)
            assert set(done.quality) == {"vector", "text", "hybrid"}
            for told in done.quality.values():
                assert told.skill > 0.3
            for each in done.quality["hybrid"].bins:
                if each.count >= 30:
                    assert abs(each.said - each.found) < 0.15

    def test_a_threshold_means_the_same_with_another_model(self):
        """Two embeddings of one set, one much noisier: .8 keeps fewer, as right as before."""
        precision, kept = [], []
        for noise in (0.5, 1.1):
            store, queries, qrels = world(noise=noise, count=300)
            with store:
                at = calibrate(store, queries, qrels, holdout=0.5).quality["vector"].at(0.8)
                precision.append(at.precision)
                kept.append(at.kept)
        assert all(p > 0.8 for p in precision)
        assert abs(precision[0] - precision[1]) < 0.12
        assert kept[0] > kept[1] + 0.1

    def test_relevance_is_the_probability_and_thresholds_compare_with_it(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            raw = {n: store.search(q).hits for n, q in queries.items()}
            done = calibrate(store, queries, qrels)
            done.apply(store)
            curve = store.calibration.curves["hybrid"]
            for name, query in list(queries.items())[:20]:
                result = store.search(query)
                assert [hit.id for hit in result] == [hit.id for hit in raw[name]]
                assert [hit.score for hit in result] == [hit.score for hit in raw[name]]
                assert "relevance: a probability, as calibrated" in result.plan
                for hit in result:
                    standards = {leg: np.array([seen.standard]) for leg, seen in hit.legs.items()}
                    assert hit.relevance == pytest.approx(curve.probability(standards)[0])
                kept = store.search(replace(query, min_score=0.5))
                assert [h.id for h in kept] == [h.id for h in result if h.relevance >= 0.5]
                for fusion in ("rrf", "minmax"):
                    other = store.search(replace(query, fusion=fusion))
                    same = {hit.id: hit.relevance for hit in result}
                    assert all(
                        h.relevance == pytest.approx(same[h.id]) for h in other if h.id in same
                    )

    def test_explain_tells_the_same_probability(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            calibrate(store, queries, qrels).apply(store)
            query = replace(queries["q1"], min_score=0.9, top_k=5)
            relevances = {h.id: h.relevance for h in store.search(queries["q1"])}
            missed = next(id for id, relevance in relevances.items() if relevance < 0.9)
            told = store.explain(query, missed)
            step = next(step for step in told.steps if step.stage == "min_score")
            assert told.lost_at == "min_score"
            assert step.value == pytest.approx(relevances[missed])
            unfetched = next(f"d{i}" for i in range(150) if f"d{i}" not in relevances)
            assert not store.explain(query, unfetched).found

    @pytest.mark.parametrize("mode", ["vector", "text"])
    def test_one_leg(self, mode):
        store, queries, qrels = world(noise=0.6)
        with store:
            calibrate(store, queries, qrels).apply(store)
            curve = store.calibration.curves[mode]
            for query in list(queries.values())[:10]:
                result = store.search(replace(query, mode=mode))
                assert result.hits
                assert [h.relevance for h in result] == sorted(
                    (h.relevance for h in result), reverse=True
                )
                assert result.hits[0].relevance <= curve.probabilities[-1]
                assert result.hits[-1].relevance >= curve.probabilities[0]

    def test_it_is_kept_in_the_folder_and_can_be_dropped(self, tmp_path):
        memory, queries, qrels = world(noise=0.6)
        with memory, cormorant.open(tmp_path / "kb") as store:
            store.add(memory.records(with_vectors=True))
            calibrate(store, queries, qrels).apply(store)
            kept = store.calibration
        with cormorant.open(tmp_path / "kb") as store:
            assert store.calibration.to_json() == kept.to_json()
            assert kept.evidence["held_out"]["hybrid"]["brier"] < 0.02
            hit = store.search(queries["q1"]).hits[0]
            store.set_calibration(None)
            assert store.calibration is None
            assert store.search(queries["q1"]).hits[0].relevance != hit.relevance

    def test_two_runs_come_to_the_same(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            first, second = (calibrate(store, queries, qrels).calibration for _ in range(2))
            assert first.to_json() == second.to_json()
            assert json.loads(json.dumps(first.to_json(), allow_nan=False)) == first.to_json()

    def test_text_alone(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            done = calibrate(store, {n: q.text for n, q in queries.items()}, qrels)
            assert set(done.calibration.curves) == {"text"}
            done.apply(store)
            asked = replace(queries["q1"], min_score=0.2)
            assert "not for hybrid" in " ".join(store.search(asked).degraded)
            assert not store.search(queries["q1"]).degraded
            assert any("not calibrated for hybrid" in s for s in store.search(queries["q1"]).plan)

    def test_weights_set_in_the_store_are_those_of_the_standing(self):
        store, queries, qrels = world(noise=0.6)
        with store:
            store.set_ranking(cormorant.store.RankingConfig(weights={"vector": 0.8, "text": 0.2}))
            curves = calibrate(store, queries, qrels).calibration.curves
            assert dict(curves["hybrid"].weights) == {"vector": 0.8, "text": 0.2}

    @pytest.mark.parametrize(
        ("told", "says"),
        [
            ({"holdout": 0}, "holdout"),
            ({"seed": 1.5}, "seed"),
            ({"relevant": 0}, "grade above 0"),
            ({"relevant": 2}, "only 0 relevant candidates"),
        ],
    )
    def test_wrong_arguments(self, told, says):
        store, queries, qrels = world(noise=0.6)
        with store, pytest.raises(UsageError, match=says):
            calibrate(store, queries, qrels, **told)

    def test_too_few_judgements(self):
        store, queries, qrels = world(noise=0.6)
        with store, pytest.raises(UsageError, match="Judge more queries"):
            calibrate(store, queries, dict(list(qrels.items())[:9]))


class TestAnotherEmbedder:
    def filled(self, path, name, seed):
        store = cormorant.open(path)
        store.remember_fingerprint(print_of(seed, name))
        return store

    def test_a_threshold_is_refused_and_relevances_are_flagged(self, tmp_path):
        memory, queries, qrels = world(noise=0.6)
        with memory, self.filled(tmp_path / "kb", "first", 1) as store:
            records = list(memory.records(with_vectors=True))
            store.add(records)
            calibrate(store, queries, qrels).apply(store)
            assert not store.search(queries["q1"]).degraded
            # The same model by another name, nearly the same numbers: no doubt.
            store.remember_fingerprint(replace(print_of(1, "renamed")))
            assert not store.search(queries["q1"]).degraded
            store.delete(filter={})
            store.remember_fingerprint(print_of(2, "second"))
            store.add(records)
            result = store.search(queries["q1"])
            assert any(
                "no probabilities" in said and "'second'" in said for said in result.degraded
            )
            with pytest.raises(QueryError, match="Calibrate the store again"):
                store.search(replace(queries["q1"], min_score=0.8))
            # Words have no embedder.
            words = Query(text=queries["q1"].text, min_score=0.5)
            assert "relevance: a probability, as calibrated" in store.search(words).plan
            calibrate(store, queries, qrels).apply(store)
            assert not store.search(replace(queries["q1"], min_score=0.8)).degraded

    def test_a_calibration_of_another_store_is_refused(self, tmp_path):
        memory, queries, qrels = world(noise=0.6)
        with memory, self.filled(tmp_path / "a", "first", 1) as store:
            store.add(memory.records(with_vectors=True))
            done = calibrate(store, queries, qrels)
            with (
                self.filled(tmp_path / "b", "second", 2) as other,
                pytest.raises(ConfigError, match="own embedder"),
            ):
                done.apply(other)


class TestWhatIsNoCalibration:
    @pytest.mark.parametrize(
        ("made", "says"),
        [
            (([], [], {"text": 1}), "at least one"),
            (([0, 1], [0.1], {"text": 1}), "as many"),
            (([1, 0], [0.1, 0.2], {"text": 1}), "standings rise"),
            (([0, 1], [0.3, 0.2], {"text": 1}), "do not fall"),
            (([0, 1], [0.3, 1.2], {"text": 1}), r"\[0, 1\]"),
            (([0, float("nan")], [0.3, 0.4], {"text": 1}), "finite"),
            ((["a"], [0.1], {"text": 1}), "made of numbers"),
            (([0], [0.1], {"words": 1}), "'vector' and 'text'"),
            (([0], [0.1], {"text": 0}), "above 0"),
        ],
    )
    def test_curves(self, made, says):
        with pytest.raises(ConfigError, match=says):
            Curve(*made)

    def test_calibrations(self):
        curve = Curve([0.0], [0.5], {"text": 1.0})
        with pytest.raises(ConfigError, match="a curve by mode"):
            Calibration({})
        with pytest.raises(ConfigError, match="The hybrid curve weighs"):
            Calibration({"hybrid": curve})
        with pytest.raises(ConfigError, match="has a Curve for"):
            Calibration({"words": curve})
        with cormorant.open(":memory:") as store:
            with pytest.raises(ConfigError, match="takes a Calibration"):
                store.set_calibration({"text": curve})
            with pytest.raises(ConfigError, match="JSON"):
                store.set_calibration(Calibration({"text": curve}, evidence={"x": object()}))


class TestScopes:
    def test_what_was_fitted_in_a_scope_is_applied_to_the_store_alone(self):
        store, _, _ = world(noise=0.5)
        with store:
            store.add({"id": f"s{i}", "text": f"{word} here", "metadata": {"tenant": "a"}}
                      for i, word in enumerate(WORDS))  # fmt: skip
            view = store.scope(tenant="a")
            asked = {f"q{i}": Query(text=word, mode="text") for i, word in enumerate(WORDS)}
            done = calibrate(view, asked, {f"q{i}": {f"s{i}": 1} for i in range(len(WORDS))})
            with pytest.raises(ScopeError, match="whole store"):
                done.apply(view)
            done.apply(store)
            assert store.calibration == done.calibration

    def test_no_question_stands_in_what_the_store_keeps(self):
        store, queries, qrels = world(noise=0.5)
        with store:
            queries["q0"] = Query(text="?!", mode="text")
            done = calibrate(store, queries, qrels)
            (note,) = [note for note in done.notes if "hold nothing" in note]
            assert "'q0'" in note
            kept = json.dumps(done.calibration.to_json())
            assert "1 of 150 questions hold nothing" in kept
            assert "q0" not in kept
            assert "?!" not in kept


def test_a_metadata_field_can_be_judged():
    with cormorant.open(":memory:") as store:
        names = [f"{a}a{b}o" for a in "bdfgk" for b in "lmnprst"]
        store.add(
            {"id": f"{name}#1", "text": f"{name} among others", "metadata": {"page": name}}
            for name in names
        )
        asked, qrels = {n: f"{n} others" for n in names}, {n: {n: 1} for n in names}
        with pytest.raises(UsageError, match="Nothing can be calibrated"):
            calibrate(store, asked, qrels)
        calibrate(store, asked, qrels, by="page").apply(store)
        hits = store.search(Query(text="balo others", min_score=0.8))
        assert [hit.id for hit in hits] == ["balo#1"]


def test_probabilities_that_tell_nothing_are_said_to():
    store, queries, qrels = world(noise=0.1)
    with store:
        assert not any("no better" in note for note in calibrate(store, queries, qrels).notes)
        rng = np.random.default_rng(1)
        few = list(queries)[:15]
        chance = {q: {f"d{i}": 1 for i in rng.choice(150, 15, replace=False)} for q in few}
        done = calibrate(store, queries, chance)
        for mode, each in done.quality.items():
            told = any(f"In {mode} mode" in note and "no better" in note for note in done.notes)
            assert told == (each.brier >= each.brier_without)
        assert any("no better" in note for note in done.calibration.evidence["notes"])
