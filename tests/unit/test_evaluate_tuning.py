"""Tuning: what it tries, what it chooses, and that it says when nothing helps."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import cormorant
from cormorant import Query
from cormorant.errors import ConfigError, EvalFileError, ScopeError, UsageError
from cormorant.evaluate import Chunking, Point, Space, judge, run_system, tune
from cormorant.evaluate.splitting import split
from cormorant.evaluate.tuning import AS_SET
from cormorant.evaluate.tuning.choosing import choose, cross_validate
from cormorant.evaluate.tuning.journal import Journal
from cormorant.evaluate.tuning.point import simplicity

WORDS = [f"word{i}" for i in range(60)]
SHARES = {"vector_weight": [0.1, 0.3, 0.5, 0.7, 0.9]}


def world(*, vectors: str, count: int = 60, seed: int = 3, said: int = 2):
    """A store, queries and judgements: words say a little of what is asked, vectors more or less.

    ``vectors`` is ``good`` (near the answer's), or ``noise``; ``said`` is how many words of the
    answer the question has.
    """
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((count, 12))
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(count)]
    store = cormorant.open(":memory:")
    store.add(
        {"id": f"d{i}", "text": texts[i], "vector": made[i], "metadata": {"n": i % 2}}
        for i in range(count)
    )
    queries = {}
    for i in range(count):
        near = made[i] + 0.3 * rng.standard_normal(12)
        vector = near if vectors == "good" else rng.standard_normal(12)
        words = " ".join([*rng.choice(texts[i].split(), said), *rng.choice(WORDS, 4)])
        queries[f"q{i}"] = Query(text=words, vector=vector)
    return store, queries, {f"q{i}": {f"d{i}": 1} for i in range(count)}


class TestSpace:
    def test_lists_values_and_ranges(self):
        space = Space.of({"vector_weight": {"from": 0.1, "to": 0.3, "step": 0.1}, "fusion": "rrf"})
        assert space.values == {"vector_weight": (0.1, 0.2, 0.3), "fusion": ("rrf",)}

    def test_the_grid_of_weights_reads_as_written(self):
        space = Space.of({"vector_weight": {"from": 0.5, "to": 0.9, "step": 0.1}})
        weights = [point.weights for point in space.points(depth=10)]
        assert {"vector": 0.9, "text": 0.1} in weights
        assert {"vector": 0.6, "text": 0.4} in weights

    def test_words_for_what_toml_cannot_say(self):
        space = Space.of({"mmr_lambda": ["off", 0.7], "rerank_k": ["off", 5], "fetch_k": "default"})
        assert space.values == {"mmr_lambda": (None, 0.7), "rerank_k": (0, 5), "fetch_k": (None,)}

    def test_what_changes_nothing_is_tried_once(self):
        space = Space.of(
            {"fusion": ["z", "rrf"], "rrf_k": [10, 60, 100], "vector_weight": [0, 0.5, 1]}
        )
        points = space.points(depth=10)
        assert len(points) == 6  # each leg alone, z, and rrf with three constants
        assert points[0] == Point()
        assert list(points) == sorted(points, key=simplicity)

    def test_an_overlap_as_large_as_its_chunk_is_no_configuration(self):
        space = Space.of({"chunk_size": [10, 100], "chunk_overlap": [5, 20]})
        sizes = {(p.chunk_size, p.chunk_overlap) for p in space.points(depth=10)}
        assert sizes == {(10, 5), (100, 5), (100, 20)}
        with pytest.raises(ConfigError, match="smaller overlaps"):
            Space.of({"chunk_size": 10, "chunk_overlap": 10}).points(depth=10)

    def test_a_file(self, tmp_path):
        path = tmp_path / "space.toml"
        path.write_text('fusion = ["z", "rrf"]\nvector_weight = { from = 0, to = 1, step = 0.5 }\n')
        assert Space.read(path).values["vector_weight"] == (0.0, 0.5, 1.0)
        path.write_text("fusion = [")
        with pytest.raises(ConfigError, match="not valid TOML"):
            Space.read(path)
        with pytest.raises(ConfigError, match="Cannot read"):
            Space.read(tmp_path / "none.toml")

    @pytest.mark.parametrize(
        ("written", "says"),
        [
            ({}, "names no setting"),
            ({"vector_weigth": 0.5}, "Did you mean 'vector_weight'"),
            ({"vector_weight": 1.5}, "got 1.5; accepted is a number from 0"),
            ({"vector_weight": []}, "the list is empty"),
            ({"vector_weight": {"from": 0, "to": 1}}, "a range is written"),
            ({"vector_weight": {"from": 1, "to": 0, "step": 0.1}}, "from ≤ to"),
            ({"vector_weight": {"from": 0, "to": 1, "step": 1e-300}}, "larger step"),
            ({"fusion": "borda"}, "accepted is z, rrf, minmax"),
            ({"fetch_k": 0}, "whole number of at least 1"),
            ({"rrf_k": float("nan")}, "at least 0"),
            ({"mmr_lambda": True}, "or 'off'"),
            ({"language": "klingon"}, "klingon"),
            ({"ef_search": [64, 128]}, "approximate indexes"),
            ({"nprobe": 4}, "approximate indexes"),
            (
                {"rrf_k": {"from": 1, "to": 200, "step": 1}, "fetch_k": list(range(1, 99))},
                "combinations",
            ),
        ],
    )
    def test_what_cannot_be_tried_is_refused(self, written, says):
        with pytest.raises(ConfigError, match=says):
            Space.of(written)


class TestChoosing:
    def test_the_simplest_within_one_standard_error(self):
        rng = np.random.default_rng(0)
        base = rng.random(200)
        points = [None, Point(vector_weight=0.7), Point(fusion="rrf", vector_weight=0.7)]
        noise = rng.normal(0, 0.1, 200)
        noise -= noise.mean()
        same = np.stack([base, base + noise + 0.001, base + noise + 0.002])
        assert choose(same, points).chosen == 0
        assert choose(same, points).best == 2
        better = np.stack([base, base + noise + 0.02, base + noise + 0.0201])
        assert choose(better, points).chosen == 2  # its lead has no spread, so it is no noise
        lead = rng.normal(0, 0.1, 200)
        better[2] = better[1] + lead - lead.mean() + 0.001
        assert choose(better, points).chosen == 1

    def test_equal_values_leave_the_store_as_it_is(self):
        values = np.tile(np.random.default_rng(0).random(50), (3, 1))
        points = [Point(vector_weight=0.7), None, Point()]
        assert choose(values, points).chosen == choose(values, points).best == 1

    def test_cross_validation_judges_a_choice_on_other_queries(self):
        rng = np.random.default_rng(1)
        base = rng.random(100)
        points = [None, Point(vector_weight=0.7)]
        gains = cross_validate(np.stack([base, base + 0.1]), points, folds=5)
        assert [fold.queries for fold in gains] == [20] * 5
        assert all(fold.chosen == points[1] for fold in gains)
        assert all(fold.gain == pytest.approx(0.1) for fold in gains)

    @pytest.mark.parametrize(
        ("usual", "last", "chosen", "gain"),
        [
            (0.2, -0.3, Point(vector_weight=0.7), -0.3),  # looks good on the others, and is not
            (-0.05, 1.0, None, 0.0),  # good there alone, which the choice does not see
        ],
    )
    def test_a_fold_has_no_part_in_its_own_choice(self, usual, last, chosen, gain):
        apart = np.array([usual] * 40 + [last] * 10)
        points = [None, Point(vector_weight=0.7)]
        folds = cross_validate(np.stack([np.zeros(50), apart]), points, folds=5)
        assert folds[4].chosen == chosen
        assert folds[4].gain == pytest.approx(gain)
        assert all(fold.gain == pytest.approx(usual) for fold in folds[:4])

    def test_simplicity(self):
        ordered = [
            None,
            Point(),
            Point(vector_weight=0.6),
            Point(vector_weight=0.7),
            Point(fetch_k=100),
            Point(mmr_lambda=0.7),
            Point(rerank_k=20),
            Point(fusion="rrf", vector_weight=0.6),
            Point(language="german"),
        ]
        turned = ordered[::-1]
        assert sorted(turned, key=simplicity) == ordered

    def test_a_split_depends_on_ids_and_seed_alone(self):
        names = [f"q{i}" for i in range(40)]
        training, held = split(names, holdout=0.3, least=10, seed=1)
        assert split(names[::-1], holdout=0.3, least=10, seed=1) == (training, held)
        assert split(names, holdout=0.3, least=10, seed=2) != (training, held)
        assert (len(training), len(held)) == (28, 12)
        assert set(training) | set(held) == set(names)
        with pytest.raises(UsageError, match="8 judged queries"):
            split(names[:8], holdout=0.3, least=10, seed=1)


class TestTune:
    def test_a_gain_is_found_used_and_kept_in_the_store(self):
        store, queries, qrels = world(vectors="good", count=120, said=0)
        with store:
            tuned = tune(store, queries, qrels, space={"vector_weight": [0.1, 0.5, 0.9, 1.0]})
            assert tuned.chosen is not None
            assert tuned.chosen.vector_weight > 0.5
            assert tuned.recommended == tuned.chosen
            assert tuned.comparison is not None
            assert tuned.comparison.interval.low > 0
            assert tuned.apply(store)
            assert dict(store.ranking.weights) == tuned.chosen.weights
            kept = store.ranking.evidence
            assert kept["held_out"][tuned.chosen.says] > kept["held_out"][AS_SET]
            assert kept["comparison"]["verdict"] == "better"
            assert json.loads(json.dumps(dict(kept), allow_nan=False)) == kept
            # The store's own searches give what was measured.
            held = tuned.held_out[tuned.chosen.says]
            for name in held.queries:
                hits = store.search(queries[name])
                assert tuple(hit.id for hit in hits) == held.run.ids(name)

    def test_what_was_applied_is_what_the_next_tuning_starts_from(self):
        store, queries, qrels = world(vectors="good", count=120, said=0)
        with store:
            first = tune(store, queries, qrels, space={"vector_weight": [0.5, 0.9]})
            assert first.apply(store)
            second = tune(store, queries, qrels, space={"vector_weight": [0.5, 0.9]})
            assert second.chosen is None
            assert second.training.means[None] == first.training.means[first.chosen]
            assert not second.apply(store)
            assert store.ranking is not None

    def test_where_nothing_helps_it_says_so(self):
        store, queries, qrels = world(vectors="good", count=80)
        with store:
            tuned = tune(store, queries, qrels, space={"rrf_k": [10, 60], "fetch_k": [50, 60]})
            assert tuned.chosen is None
            assert tuned.recommended is None
            assert tuned.ranking is None
            assert tuned.comparison is None
            assert "keep it" in tuned.says
            assert not tuned.apply(store)
            assert store.ranking is None

    def test_a_choice_that_does_not_hold_is_not_recommended(self):
        """Judgements by chance: whatever is chosen on one part is luck on the other."""
        verdicts = []
        for seed in range(4):
            store, queries, _ = world(vectors="noise", count=60, seed=seed)
            rng = np.random.default_rng(seed)
            qrels = {name: {f"d{rng.integers(60)}": 1} for name in queries}
            with store:
                tuned = tune(store, queries, qrels, holdout=0.5, metric="mrr")
                verdicts.append(tuned.recommended)
                assert ("keep" in tuned.says) == (tuned.recommended is None)
        assert verdicts.count(None) >= 3

    def test_two_runs_choose_alike_whatever_the_order(self):
        store, queries, qrels = world(vectors="good")
        with store:
            first = tune(store, queries, qrels, space=SHARES, seed=5)
            turned = dict(reversed(list(qrels.items())))
            second = tune(store, queries, turned, space=SHARES, seed=5)
            assert first.chosen == second.chosen
            assert first.evidence == second.evidence

    def test_every_value_is_that_of_the_search(self):
        """Fused many times, or searched anew: the same metric to the last digit."""
        store, queries, qrels = world(vectors="good")
        space = {
            "fusion": ["z", "rrf", "minmax"],
            "vector_weight": [0, 0.3, 1],
            "fetch_k": [10, 50],
        }
        space["mmr_lambda"] = ["off", 0.6]
        with store:
            tuned = tune(store, queries, qrels, space=space, metric="ndcg@5")
            training = [n for n in queries if n not in tuned.held_out[AS_SET].queries]
            texts = {query.text: query for query in queries.values()}
            judged = {name: qrels[name] for name in training}
            assert len(tuned.training.means) == 1 + 2 * 2 * (
                2 + 3
            )  # as set; both depths, with MMR and without
            for point, mean in list(tuned.training.means.items())[1:]:
                run = run_system(
                    lambda text, point=point: store.search(
                        replace(
                            texts[text],
                            top_k=5,
                            fusion=point.fusion,
                            weights=point.weights,
                            rrf_k=point.rrf_k,
                            fetch_k=point.fetch_k,
                            mmr_lambda=point.mmr_lambda,
                        )
                    ),
                    {name: queries[name].text for name in training},
                    k=5,
                )
                assert judge(run, judged, "ndcg@5").means["ndcg@5"] == pytest.approx(
                    mean, abs=1e-12
                )

    @pytest.mark.parametrize("vectors", ["good", "noise"])
    def test_as_set_is_what_the_store_answers_with_learned_trust_too(self, vectors):
        store, queries, qrels = world(vectors=vectors)
        with store:
            store.learn_trust()
            tuned = tune(store, queries, qrels, space={"vector_weight": [0.5, 0.8]})
            as_set = tuned.held_out[AS_SET]
            for name in as_set.queries:
                result = store.search(queries[name])
                assert tuple(hit.id for hit in result) == as_set.run.ids(name)
                assert any("as learned" in said for said in result.plan)

    def test_text_alone_tunes_the_analyzer_in_a_store_built_for_it(self):
        store = cormorant.open(":memory:", language="none")
        stems = [f"{a}a{b}ind" for a in "bdfgklmp" for b in "nrstv"]
        store.add({"id": stem, "text": f"{stem}ing"} for stem in stems)
        with store:
            queries = {stem: f"{stem}ed" for stem in stems}
            qrels = {stem: {stem: 1} for stem in stems}
            tuned = tune(store, queries, qrels, space={"language": ["english"]})
            assert tuned.recommended == Point(language="english")
            with pytest.raises(ConfigError, match="language = english"):
                tuned.apply(store)
            assert store.count() == len(stems)

    def test_no_question_stands_in_what_the_store_keeps(self):
        store, queries, qrels = world(vectors="good")
        with store:
            name = next(iter(queries))
            queries[name] = Query(text="?!", mode="text")
            tuned = tune(store, queries, qrels)
            assert any(f"such as {name!r}" in note for note in tuned.notes)
            notes = tuned.evidence["notes"]
            assert any("hold nothing this store can search" in note for note in notes)
            assert not any(repr(name) in note or "?!" in note for note in notes)

    def test_a_scoped_view_is_not_set(self):
        store, queries, qrels = world(vectors="good")
        with store:
            tuned = tune(store, queries, qrels)
            with pytest.raises(ScopeError, match="whole store"):
                tuned.apply(store.scope(tenant="a"))

    def test_a_metadata_field_is_judged_as_run_system_judges_it(self):
        store, queries, _ = world(vectors="good")
        with store:
            records = list(store.records(with_vectors=True))
            store.add(
                {
                    "id": f"{each.id}{part}",
                    "text": f"{each.text} {part}",
                    "vector": each.vector,
                    "metadata": {"page": f"p{each.id}"},
                }
                for each in records
                for part in "ab"
            )
            store.delete([each.id for each in records])
            qrels = {name: {f"p{name.replace('q', 'd')}": 1} for name in queries}
            with pytest.raises(UsageError, match="with by, values of a metadata field"):
                tune(store, queries, qrels)
            tuned = tune(store, queries, qrels, by="page")
            assert tuned.evidence["by"] == "tune"
            as_set = tuned.held_out[AS_SET]
            assert as_set.means["ndcg@10"] > 0.3
            for name in as_set.queries:
                pages = [hit.metadata["page"] for hit in store.search(queries[name])]
                assert as_set.run.ids(name) == tuple(dict.fromkeys(pages))
            with pytest.raises(UsageError, match="no metadata field 'sheet'"):
                tune(store, queries, qrels, by="sheet")

    def test_text_alone_with_nothing_to_try_is_refused(self):
        store, queries, qrels = world(vectors="good")
        with store, pytest.raises(UsageError, match="Give embed="):
            tune(store, {name: query.text for name, query in queries.items()}, qrels)

    def test_chunks_stand_for_their_documents(self):
        documents = {
            f"d{i}": " ".join([f"key{i}", *["filler"] * 30, f"other{(i + 1) % 40}"])
            for i in range(40)
        }
        chunking = Chunking(documents, _cut)
        with cormorant.open(":memory:") as store:
            store.add({"id": id, "text": text} for id, text in documents.items())
            queries = {f"q{i}": f"key{i} other{(i + 2) % 40}" for i in range(40)}
            qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
            space = {"chunk_size": ["default", 5], "chunk_overlap": [0, 2]}
            tuned = tune(store, queries, qrels, space=space, chunking=chunking)
            held = tuned.held_out[AS_SET]
            assert held.means["ndcg@10"] > 0.5
            assert {p.chunk_size for p in tuned.training.means if p is not None} == {None, 5}
            assert all(mean > 0.5 for mean in tuned.training.means.values())
            with pytest.raises(ConfigError, match="chunking="):
                tune(store, queries, qrels, space=space)

    def test_a_reranker_is_a_callable(self):
        store, queries, qrels = world(vectors="noise")
        asked = []

        def knows(question, texts):
            asked.append(len(texts))
            right = {q.text: n for n, q in queries.items()}[question]
            wanted = store.get([right.replace("q", "d")])[0].text
            return [float(text == wanted) for text in texts]

        with store:
            tuned = tune(store, queries, qrels, space={"rerank_k": ["off", 30]}, rerank=knows)
            assert tuned.recommended == Point(rerank_k=30)
            with pytest.raises(ConfigError, match="rerank_k = 30"):
                tuned.apply(store)
            with pytest.raises(UsageError, match="there is no reranker"):
                tune(store, queries, qrels, space={"rerank_k": [30]})
            with pytest.raises(UsageError, match="returned 1 scores"):
                tune(store, queries, qrels, space={"rerank_k": [9]}, rerank=lambda _q, _t: [1.0])

    def test_queries_that_hold_nothing_are_counted_and_said(self):
        store, queries, qrels = world(vectors="good")
        with store:
            space = {"bm25_b": [0.75]}
            texts = {n: "?!" if n == "q3" else q.text for n, q in queries.items()}
            tuned = tune(store, texts, qrels, space=space, metric="recall@5")
            assert any("q3" in note and "unanswered" in note for note in tuned.notes)

    def test_a_scope_is_kept_to(self):
        store, queries, qrels = world(vectors="good")
        with store:
            even = store.scope(n=0)
            judged = {n: v for n, v in qrels.items() if int(n[1:]) % 2 == 0}
            tuned = tune(even, queries, judged, space={"bm25_k1": [0.9], "vector_weight": [0.5]})
            for evaluation in tuned.held_out.values():
                for name in evaluation.queries:
                    assert all(int(id[1:]) % 2 == 0 for id in evaluation.run.ids(name))

    @pytest.mark.parametrize(
        ("told", "says"),
        [
            ({"holdout": 1.0}, "holdout"),
            ({"holdout": "half"}, "holdout"),
            ({"folds": 1}, "folds"),
            ({"seed": -1}, "seed"),
            ({"metric": "unjudged@10"}, "no measure of quality"),
            ({"metric": "ndgc@10"}, "Did you mean"),
            ({"resume": True}, "journal"),
        ],
    )
    def test_wrong_arguments(self, told, says):
        store, queries, qrels = world(vectors="good")
        with store, pytest.raises(UsageError, match=says):
            tune(store, queries, qrels, **told)

    def test_judgements_without_queries(self):
        store, queries, qrels = world(vectors="good")
        with store:
            with pytest.raises(UsageError, match="'nobody'"):
                tune(store, queries, {**qrels, "nobody": {"d1": 1}})
            with pytest.raises(UsageError, match="qrels is empty"):
                tune(store, queries, {})
            with pytest.raises(UsageError, match=r"a text or a cormorant\.Query"):
                tune(store, {**queries, "q1": 7}, qrels)


class Stop(Exception):
    """The work is interrupted."""


@pytest.mark.parametrize("grades", [{"d0": 0}, {"elsewhere": 1}, {}])
def test_judgements_that_nothing_can_be_chosen_by_are_refused(grades):
    store, queries, qrels = world(vectors="good")
    with store, pytest.raises(UsageError, match="name records of this store"):
        tune(store, queries, dict.fromkeys(qrels, grades), space=SHARES)


class TestJournal:
    def test_an_interrupted_tuning_goes_on_and_comes_to_the_same(self, tmp_path):
        store, queries, qrels = world(vectors="good", count=100)
        path = tmp_path / "journal"
        with store:
            whole = tune(store, queries, qrels, space=SHARES)

            def stop(done, of):
                if 0 < done < of:
                    raise Stop

            with pytest.raises(Stop):
                tune(store, queries, qrels, space=SHARES, journal=path, progress=stop)
            with path.open("ab") as out:
                out.write(b'{"piece": "0/1", "shape": [6,')  # torn
            heard = []
            resumed = tune(
                store,
                queries,
                qrels,
                space=SHARES,
                journal=path,
                resume=True,
                progress=lambda done, of: heard.append((done, of)),
            )
            assert heard[0] == (64, 70)
            assert heard[-1] == (70, 70)
            assert resumed.evidence == whole.evidence
            again = tune(store, queries, qrels, space=SHARES, journal=path, resume=True)
            assert again.evidence == whole.evidence
            assert again.training.means == whole.training.means

    def test_a_journal_of_another_tuning_is_refused(self, tmp_path):
        store, queries, qrels = world(vectors="good")
        path = tmp_path / "journal"
        with store:
            tune(store, queries, qrels, space=SHARES, journal=path)
            store.add([{"id": "d0", "text": "changed", "vector": [0.5] * 12}])
            with pytest.raises(ConfigError, match="another tuning"):
                tune(store, queries, qrels, space=SHARES, journal=path, resume=True)
            tune(store, queries, qrels, space=SHARES, journal=path)
            other = {**queries, "q1": Query(text="else", vector=queries["q1"].vector)}
            for changed in ({"queries": other}, {"space": {"vector_weight": [0.5, 0.6]}}):
                told = {"queries": queries, "space": SHARES, **changed}
                with pytest.raises(ConfigError, match="another tuning"):
                    tune(
                        store,
                        told["queries"],
                        qrels,
                        space=told["space"],
                        journal=path,
                        resume=True,
                    )

    def test_damage_is_told_by_line(self, tmp_path):
        path = tmp_path / "journal"
        journal = Journal(path, belongs_to="x", resume=False)
        journal.put("a", np.arange(6.0).reshape(2, 3))
        journal.put("b", np.ones((1, 2)))
        journal.close()
        read = Journal(path, belongs_to="x", resume=True)
        assert len(read) == 2
        assert np.array_equal(read.get("a"), np.arange(6.0).reshape(2, 3))
        read.close()
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(lines[0] + lines[1].replace(b'"crc": ', b'"crc": 1') + lines[2])
        with pytest.raises(EvalFileError, match="damaged") as caught:
            Journal(path, belongs_to="x", resume=True)
        assert caught.value.line == 2
        path.write_text("nonsense\n")
        with pytest.raises(EvalFileError, match="no tuning journal"):
            Journal(path, belongs_to="x", resume=True)
        with pytest.raises(EvalFileError, match="Cannot write"):
            Journal(tmp_path / "no" / "journal", belongs_to="x", resume=False)

    @pytest.mark.parametrize("resume", [False, True])
    @pytest.mark.parametrize("content", [b"1 0 d 1\n", b"no line end", b'{"query": "1"}\n', b"\n"])
    def test_a_file_that_is_something_else_is_not_written_over(self, tmp_path, content, resume):
        path = tmp_path / "qrels.trec"
        path.write_bytes(content)
        with pytest.raises(EvalFileError, match="no tuning journal"):
            Journal(path, belongs_to="x", resume=resume)
        assert path.read_bytes() == content

    def test_two_tunings_do_not_share_a_journal(self, tmp_path):
        path = tmp_path / "journal"
        with Journal(path, belongs_to="x", resume=False) as first:
            for resume in (False, True):
                with pytest.raises(EvalFileError, match="Another tuning"):
                    Journal(path, belongs_to="y", resume=resume)
            first.put("a", np.ones((1, 2)))
        with Journal(path, belongs_to="x", resume=True) as again:
            assert len(again) == 1
        with Journal(path, belongs_to="y", resume=False) as other:
            assert len(other) == 0

    @pytest.mark.parametrize("kept", [0, 1, 20])
    def test_a_journal_that_was_cut_off_in_its_first_line_begins_anew(self, tmp_path, kept):
        path = tmp_path / "journal"
        Journal(path, belongs_to="x", resume=False).close()
        path.write_bytes(path.read_bytes()[:kept])
        with Journal(path, belongs_to="x", resume=True) as journal:
            journal.put("a", np.ones((1, 2)))
        with Journal(path, belongs_to="x", resume=True) as journal:
            assert len(journal) == 1

    def test_what_cannot_be_written_is_said_and_leaves_no_half_line(self, tmp_path, monkeypatch):
        path = tmp_path / "journal"
        with Journal(path, belongs_to="x", resume=False) as journal:
            journal.put("a", np.ones((1, 2)))
            whole = path.read_bytes()
            real = os.pwrite
            monkeypatch.setattr(os, "pwrite", lambda file, data, at: real(file, data[:5], at))
            with pytest.raises(EvalFileError, match="Cannot write"):
                journal.put("b", np.ones((1, 2)))
        assert path.read_bytes() == whole


def _cut(text, size, overlap):
    words = text.split()
    return [" ".join(words[at : at + size]) for at in range(0, len(words), size - overlap)]


def test_too_few_held_out_questions_are_said_to_be():
    store, queries, qrels = world(vectors="noise", count=60)
    few = {q: qrels[q] for q in list(qrels)[:15]}
    with store:
        assert any("too few for any" in each for each in tune(store, queries, few).notes)
        assert not any("too few for any" in each for each in tune(store, queries, qrels).notes)
