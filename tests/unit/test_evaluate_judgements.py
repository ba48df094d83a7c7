"""Judgements written down, pooled and judged in turn; and models that must earn belief."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import cormorant
from cormorant.errors import EvalFileError, UsageError
from cormorant.evaluate import Golden, Run, keep_golden, kept_golden, read_qrels
from cormorant.evaluate.judgements import (
    JudgementFile,
    JudgingSession,
    ModelJudgements,
    NotBelieved,
    Origin,
    StoreJudgements,
    agreement,
    cohen_kappa,
    kept_human,
    kept_origins,
    pool,
    qrels_agreement,
)

QUERIES = {"1": "a fish?", "2": "什么鸟捕鱼？"}


@pytest.fixture
def store(tmp_path):
    with cormorant.open(tmp_path / "kb") as opened:
        opened.add([{"id": "a", "text": "a fish"}, {"id": "b", "text": "a bird"}])
        yield opened


class TestFile:
    def test_each_judgement_is_in_the_file_at_once_and_reads_as_qrels(self, tmp_path):
        path = tmp_path / "j.jsonl"
        with JudgementFile(path) as file:
            file.put("1", "a b", 2)
            assert read_qrels(path) == {"1": {"a b": 2}}
            file.put("2", "鸬鹚", 0)
            assert read_qrels(path) == file.qrels == {"1": {"a b": 2}, "2": {"鸬鹚": 0}}
        with JudgementFile(path) as again:
            again.put("1", "c", 1)
            assert again.qrels["1"] == {"a b": 2, "c": 1}

    def test_the_last_one_can_be_taken_back_and_no_other(self, tmp_path):
        path = tmp_path / "j.jsonl"
        with JudgementFile(path) as file:
            file.put("1", "a", 2)
            file.put("1", "b", 1)
            with pytest.raises(UsageError, match="not what was judged last"):
                file.take_back("1", "a")
            file.take_back("1", "b")
            file.take_back("1", "a")
            assert path.read_bytes() == b""
            assert file.qrels == {}
            file.put("1", "a", 3)
        assert read_qrels(path) == {"1": {"a": 3}}
        with JudgementFile(path) as file, pytest.raises(UsageError):
            file.take_back("1", "a")

    @pytest.mark.parametrize("cut", range(1, 60))
    def test_a_torn_last_line_is_cut_off_and_whole_ones_stay(self, tmp_path, cut):
        path = tmp_path / "j.jsonl"
        with JudgementFile(path) as file:
            file.put("1", "a", 2)
            whole = path.read_bytes()
            file.put("2", "b", 1)
        both = path.read_bytes()
        path.write_bytes(both[:-cut])
        with JudgementFile(path) as file:
            expected = {"1": {"a": 2}}
            if len(both) - cut >= len(both) - 1:  # the line end alone is missing
                expected["2"] = {"b": 1}
            if len(both) - cut < len(whole) - 1:
                expected = {}
            assert file.qrels == expected
            file.put("3", "c", 4)
        assert read_qrels(path)["3"] == {"c": 4}

    def test_what_a_killed_process_judged_is_there(self, tmp_path):
        path = tmp_path / "j.jsonl"
        script = (
            "import os, signal, sys\n"
            "from cormorant.evaluate.judgements import JudgementFile\n"
            "file = JudgementFile(sys.argv[1])\n"
            "file.put('1', 'a', 2); file.put('1', 'b', 0)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        done = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
        assert done.returncode == -9
        assert read_qrels(path) == {"1": {"a": 2, "b": 0}}

    def test_two_at_once_are_refused(self, tmp_path):
        path = tmp_path / "j.jsonl"
        with JudgementFile(path), pytest.raises(UsageError, match="Another process"):
            JudgementFile(path)
        JudgementFile(tmp_path / "j.jsonl").close()

    def test_other_endings_other_contents_and_places_are_refused(self, tmp_path):
        with pytest.raises(UsageError, match=r"\.jsonl"):
            JudgementFile(tmp_path / "j.tsv")
        with pytest.raises(EvalFileError, match="Cannot write"):
            JudgementFile(tmp_path / "no" / "j.jsonl")
        (tmp_path / "bad.jsonl").write_text('{"query": "1"}\n')
        with pytest.raises(EvalFileError, match="line 1"):
            JudgementFile(tmp_path / "bad.jsonl")
        (tmp_path / "by.jsonl").write_text(
            '{"query": "1", "document": "a", "grade": 1, "by": {"model": "m"}}\n'
        )
        with pytest.raises(EvalFileError, match="lacks"):
            JudgementFile(tmp_path / "by.jsonl")
        with JudgementFile(tmp_path / "j.jsonl") as file:
            file.put("1", "a", 1)
            with pytest.raises(UsageError, match="judged already"):
                file.put("1", "a", 2)
            with pytest.raises(UsageError, match="surrogate"):
                file.put("1", "\ud800", 2)
            assert file.qrels == {"1": {"a": 1}}


class TestStore:
    def test_judgements_join_the_golden_set_and_can_be_taken_back(self, store):
        ledger = StoreJudgements(store, QUERIES)
        ledger.put("1", "a", 2)
        assert kept_golden(store) == Golden(QUERIES, {"1": {"a": 2}})
        StoreJudgements(store, {"3": "more"}).put("3", "b", 0)
        assert kept_golden(store).qrels == {"1": {"a": 2}, "3": {"b": 0}}
        ledger.take_back("1", "a")
        assert ledger.qrels == {"3": {"b": 0}}
        ledger.take_back("3", "b")
        assert ledger.qrels == {}

    @pytest.mark.parametrize("scope", [{}, {"tenant": "acme"}])
    def test_judges_at_once_lose_nothing(self, store, scope):
        view = store.scope(**scope) if scope else store
        ledgers = [StoreJudgements(view, {f"q{n}": f"text {n}"}) for n in range(4)]
        origin = Origin("m", "p", 0.9, None, 10, 0.6)

        def judge(n):
            for doc in range(6):
                ledgers[n].put(f"q{n}", f"d{doc}", 1)
            ledgers[n].take_back(f"q{n}", "d0")
            ledgers[n].put_all({f"q{n}": {"model": 2, "d1": 0}}, origin)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(judge, range(4)))
        wanted = {f"d{doc}": 1 for doc in range(1, 6)}
        assert kept_golden(view).qrels == {f"q{n}": {**wanted, "model": 2} for n in range(4)}
        assert set(kept_golden(view).queries) == {f"q{n}" for n in range(4)}
        assert kept_origins(view) == {f"q{n}": {"model": origin} for n in range(4)}
        assert kept_human(view) == {f"q{n}": wanted for n in range(4)}

    def test_another_text_under_the_same_id_is_refused(self, store):
        keep_golden(store, Golden({"1": "a bird?"}, {"1": {"b": 1}}))
        with pytest.raises(UsageError, match="another text"):
            StoreJudgements(store, QUERIES)

    def test_each_scope_has_its_own(self, store):
        acme = store.scope(tenant="acme")
        StoreJudgements(acme, QUERIES).put("1", "a", 2)
        assert StoreJudgements(store, QUERIES).qrels == {}
        assert StoreJudgements(acme, QUERIES).qrels == {"1": {"a": 2}}


class TestPool:
    RUNS = (
        Run("one", {"1": (("a", 3.0), ("b", 2.0), ("c", 1.0))}),
        Run("two", {"1": (("d", 3.0), ("a", 2.0)), "9": (("z", 1.0),)}),
    )

    def test_the_first_of_each_run_once_in_the_queries_order(self):
        pooled = pool(self.RUNS, QUERIES, depth=2)
        assert list(pooled) == ["1", "2"]
        assert sorted(pooled["1"]) == ["a", "b", "d"]
        assert pooled["2"] == ()

    def test_the_order_tells_neither_runs_nor_ranks(self):
        many = tuple((f"d{i}", -float(i)) for i in range(30))
        forth = pool([Run("a", {"1": many})], QUERIES, depth=30)["1"]
        back = tuple((doc, -float(i)) for i, (doc, _) in enumerate(reversed(many)))
        assert pool([Run("b", {"1": back})], QUERIES, depth=30)["1"] == forth
        assert forth != tuple(doc for doc, _ in many)
        assert pool([Run("a", {"1": many})], QUERIES, depth=30, seed=1)["1"] != forth

    @pytest.mark.parametrize(
        ("runs", "queries", "depth"),
        [([], QUERIES, 2), (RUNS, {"8": "x"}, 2), (RUNS, QUERIES, 0), (RUNS, QUERIES, 1.5)],
    )
    def test_nothing_to_judge_is_refused(self, runs, queries, depth):
        with pytest.raises(UsageError):
            pool(runs, queries, depth=depth)


class TestSession:
    def test_answers_are_durable_skips_come_again_and_undo_goes_back(self, tmp_path):
        pooled = {"1": ("a", "b"), "2": ("c",)}
        with JudgementFile(tmp_path / "j.jsonl") as file:
            session = JudgingSession(pooled, file)
            assert session.undo() is None
            session.grade(3)
            session.skip()
            assert (session.current.query, session.current.doc, len(session)) == ("2", "c", 3)
            assert session.undo().doc == "b"
            session.grade(0)
            assert session.undo().doc == "b"
            session.skip()
            session.grade(4)
            assert session.current is None
            assert (session.judged, session.skipped) == (2, 1)
            assert session.by_grade == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}
            for call in (session.skip, lambda: session.grade(1)):
                with pytest.raises(UsageError, match="Everything"):
                    call()
            assert read_qrels(tmp_path / "j.jsonl") == {"1": {"a": 3}, "2": {"c": 4}}
            assert JudgingSession(pooled, file).current.doc == "b"

    @pytest.mark.parametrize("grade", [5, -1, True, 2.5])
    def test_other_grades_are_refused(self, tmp_path, grade):
        with JudgementFile(tmp_path / "j.jsonl") as file:
            session = JudgingSession({"1": ("a",)}, file)
            with pytest.raises(UsageError, match="A grade"):
                session.grade(grade)
            assert session.judged == 0


def judged(grades, unjudged=None):
    return ModelJudgements(grades, unjudged or {}, "some-model", "abcdef0123456789")


HUMAN = {f"q{i}": {f"d{j}": (i + j) % 3 for j in range(3)} for i in range(20)}


class TestBelief:
    def test_one_that_agrees_is_written_with_its_model_prompt_and_kappa(self, tmp_path):
        grades = {q: {**each, "new": 2} for q, each in HUMAN.items()}
        believed = judged(grades).believed(HUMAN)
        assert believed.agreement.kappa == 1
        assert believed.qrels == {q: {"new": 2} for q in HUMAN}
        path = tmp_path / "j.jsonl"
        with JudgementFile(path) as file:
            file.put("q0", "new", 0)
            file.put("q0", "d0", 1)
        assert believed.write(path) == 19
        assert believed.write(path) == 0
        last = json.loads(path.read_text().splitlines()[-1])
        assert last == {
            "query": "q19",
            "document": "new",
            "grade": 2,
            "by": {
                "model": "some-model",
                "prompt": "abcdef0123456789",
                "kappa": 1.0,
                "weights": "linear",
                "labels": 60,
                "threshold": 0.6,
            },
        }
        with JudgementFile(path) as file:
            assert file.human == {"q0": {"new": 0, "d0": 1}}
            assert file.origins["q1"]["new"] == believed.origin
        merged = believed.merged(HUMAN)
        assert merged["q3"] == {**HUMAN["q3"], "new": 2}

    def test_people_come_first_where_both_judged(self):
        grades = {q: dict(each) for q, each in HUMAN.items()}
        grades["q0"]["d0"] = 2
        believed = judged(grades).believed(HUMAN)
        assert believed.qrels == {}
        assert believed.merged(HUMAN) == HUMAN

    def test_people_who_judge_later_come_first_too(self):
        grades = {q: {**each, "new": 2} for q, each in HUMAN.items()}
        later = {q: {**each, "new": 0} for q, each in HUMAN.items()}
        assert judged(grades).believed(HUMAN).merged(later) == later

    def test_one_that_does_not_agree_is_refused_unless_the_threshold_says_so(self):
        grades = {q: {d: (g + 1) % 3 for d, g in each.items()} for q, each in HUMAN.items()}
        with pytest.raises(NotBelieved, match=r"at least 0\.6") as refused:
            judged(grades).believed(HUMAN)
        assert refused.value.agreement.kappa < 0
        low = judged(grades).believed(HUMAN, threshold=-1)
        assert (low.origin.kappa, low.origin.threshold) == (refused.value.agreement.kappa, -1)

    def test_too_few_labels_say_nothing(self):
        few = dict(list(HUMAN.items())[:16])
        with pytest.raises(NotBelieved, match="48 pairs"):
            judged(HUMAN).believed(few)
        assert judged(HUMAN).believed(few, least=48).origin.labels == 48
        with pytest.raises(NotBelieved, match="0 pairs"):
            judged({"other": {"x": 1}}).believed(HUMAN)

    def test_pairs_the_model_did_not_judge_are_no_labels(self):
        part = {q: {d: g for d, g in each.items() if d != "d0"} for q, each in HUMAN.items()}
        with pytest.raises(NotBelieved, match="40 pairs"):
            judged(part, {q: {"d0": "no number"} for q in HUMAN}).believed(HUMAN)

    def test_a_model_that_always_says_the_same_cannot_be_told_from_chance(self):
        same = {q: dict.fromkeys(each, 1) for q, each in HUMAN.items()}
        with pytest.raises(NotBelieved):
            judged(same).believed(HUMAN)
        with pytest.raises(NotBelieved, match="not defined"):
            judged(same).believed(same, threshold=-1)

    @pytest.mark.parametrize(
        "arguments", [{"threshold": 1.1}, {"threshold": math.nan}, {"least": 1}, {"least": 2.5}]
    )
    def test_arguments_out_of_range_are_refused(self, arguments):
        with pytest.raises(UsageError, match="got"):
            judged(HUMAN).believed(HUMAN, **arguments)

    def test_a_store_keeps_them_and_knows_whose_they_are(self, store, tmp_path):
        queries = {q: f"what of {q}?" for q in HUMAN}
        keep_golden(store, Golden(queries, HUMAN))
        grades = {q: {**each, "new": 2} for q, each in HUMAN.items()}
        believed = judged(grades).believed(kept_human(store))
        assert believed.keep(store, queries) == 20
        assert believed.keep(store, queries) == 0
        assert kept_golden(store).qrels["q4"] == {**HUMAN["q4"], "new": 2}
        assert kept_origins(store) == {q: {"new": believed.origin} for q in HUMAN}
        assert kept_human(store) == HUMAN
        store.backup(tmp_path / "copy")
        with cormorant.open(tmp_path / "copy", read_only=True) as copy:
            assert kept_human(copy) == HUMAN
        # A person judges one of them otherwise: it is that person's from then on.
        changed = {q: dict(each) for q, each in kept_golden(store).qrels.items()}
        changed["q4"]["new"] = 0
        keep_golden(store, Golden(queries, changed))
        assert "q4" not in kept_origins(store)
        assert kept_human(store)["q4"]["new"] == 0
        assert store.count() == 2

    def test_a_query_without_a_text_is_refused(self, store):
        believed = judged({q: {**each, "new": 2} for q, each in HUMAN.items()}).believed(HUMAN)
        with pytest.raises(UsageError, match="no text"):
            believed.keep(store, {})
        assert kept_origins(store) == {}


class TestAgreement:
    def test_it_says_what_was_measured(self):
        found = agreement([1, 1, 0, 2], [1, 0, 0, 2], weights="quadratic")
        assert found.grades == (0, 1, 2)
        assert found.table == ((1, 0, 0), (1, 1, 0), (0, 0, 1))
        assert (found.pairs, found.groups, found.observed) == (4, 4, 0.75)
        assert "quadratic weighted kappa" in str(found)

    def test_grades_are_weighed_by_their_distance(self):
        near = cohen_kappa([0, 3, 4, 0], [0, 4, 3, 0], weights="linear")
        far = cohen_kappa([0, 1, 4, 0], [0, 4, 1, 0], weights="linear")
        assert near > far
        scaled = cohen_kappa([0, 30, 40, 0], [0, 40, 30, 0], weights="linear")
        assert near == pytest.approx(scaled)

    def test_two_judges_in_the_same_seat_are_not_defined(self):
        assert math.isnan(cohen_kappa([1, 1], [1, 1]))
        found = agreement([1, 1], [1, 1])
        assert found.interval == (-math.inf, math.inf)

    def test_pairs_that_only_one_judged_do_not_count(self):
        found = qrels_agreement({"1": {"a": 1, "b": 0}, "2": {"c": 1}}, {"1": {"a": 1, "x": 0}})
        assert found.pairs == 1
        with pytest.raises(UsageError, match="no pair"):
            qrels_agreement({"1": {"a": 1}}, {"2": {"a": 1}})

    @pytest.mark.parametrize(
        ("ours", "theirs", "options"),
        [
            ([], [], {}),
            ([1], [1, 2], {}),
            ([math.nan], [1], {}),
            (["yes"], [1], {}),
            ([1, 0], [1, 0], {"weights": "cubic"}),
            ([1, 0], [1, 0], {"groups": ["a"]}),
            ([1, 0], [1, 0], {"confidence": 1}),
        ],
    )
    def test_what_cannot_be_compared_is_refused(self, ours, theirs, options):
        with pytest.raises(UsageError):
            agreement(ours, theirs, **options)
