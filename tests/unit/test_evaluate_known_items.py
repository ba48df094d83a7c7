"""Questions made from a store's own records: what is asked, and which records answer."""

from __future__ import annotations

import pytest

import cormorant
from cormorant import data
from cormorant.errors import UsageError
from cormorant.evaluate import judge, run_system
from cormorant.evaluate.judgements import KINDS, known_items, twins_of
from cormorant.evaluate.judgements.asking import with_words_out
from cormorant.evaluate.judgements.words import folded, pieces, words
from cormorant.model import Record


def store_of(records):
    store = cormorant.open(":memory:")
    store.add(records)
    return store


@pytest.fixture(scope="module")
def bilingual():
    records = [
        {"id": f"{language}-{id}", "text": text, "metadata": {"lang": language}}
        for language in data.LANGUAGES
        for id, text in data.documents(language).items()
    ]
    with store_of(records) as store:
        yield store


def test_every_kind_is_asked_in_both_languages_and_found(bilingual):
    made = known_items(bilingual, per_kind=20, stratify="lang")
    asked = {kind: made.of(kind) for kind in KINDS if kind in made.kinds.values()}
    assert set(asked) == {"sentence", "rare", "common"}
    for kind, golden in asked.items():
        assert len(golden.qrels) == 20
        sources = [made.sources[query] for query in golden.qrels]
        assert sum(each.startswith("zh") for each in sources) == 10
        run = run_system(bilingual, golden.judged, config={"mode": "text"})
        assert judge(run, golden.qrels, "recall@10").means["recall@10"] > 0.7, kind
    for query, source in made.sources.items():
        assert made.golden.qrels[query][source] == 1
    assert [note.split(":")[0] for note in made.notes] == ["title", "heading"]


def test_the_choice_is_the_seeds_and_not_the_orders(bilingual):
    records = list(bilingual.records())[:60]
    one = known_items(store_of(records), per_kind=9)
    other = known_items(store_of(records[::-1]), per_kind=9)
    assert one.golden == other.golden
    assert one.sources == other.sources
    assert known_items(store_of(records), per_kind=9, seed=1).golden.queries != one.golden.queries


def test_titles_and_headings_are_answered_by_all_records_that_have_them():
    guide = {"title": "Tide guide"}
    store = store_of(
        [
            {"id": "a", "text": "# Low water\nAt six.", "metadata": guide},
            {"id": "b", "text": "The rest of it.", "metadata": {"title": "TIDE  GUIDE"}},
            {"id": "c", "text": "##  Low water ##\nSomewhere else entirely.", "metadata": {}},
            {"id": "d", "text": "#hashtag\n# 12\nno heading", "metadata": {"title": 7}},
        ]
    )
    made = known_items(store, kinds=["title", "heading"])
    answers = {
        (kind, made.golden.queries[query]): set(made.golden.qrels[query])
        for query, kind in made.kinds.items()
    }
    assert answers == {
        ("title", "Tide guide"): {"a", "b"},
        ("heading", "Low water"): {"a", "c"},
    }


def test_a_title_half_the_store_has_asks_for_nothing():
    records = [
        {"id": str(i), "text": f"page {i}", "metadata": {"title": "Home"}} for i in range(21)
    ]
    records.append({"id": "x", "text": "a page", "metadata": {"title": "Contact"}})
    made = known_items(store_of(records), kinds=["title"])
    assert list(made.golden.queries.values()) == ["Contact"]
    assert "1 of 50" in made.notes[0]


SENTENCE = "Cormorants dry their spread wings on the northern pier every morning"


def test_a_held_out_sentence_is_answered_by_twins_and_overlapping_chunks():
    store = store_of(
        [
            {"id": "a", "text": f"{SENTENCE}. They are black."},
            {"id": "twin", "text": f"{SENTENCE}! They are  BLACK"},
            {
                "id": "overlap",
                "text": f"Anglers complain. {SENTENCE}. So do many others, far off.",
            },
            {"id": "other", "text": "Cormorants dry wings, and that is all that is known of them."},
        ]
    )
    made = known_items(store, kinds=["sentence"], per_kind=9)
    (query,) = [
        q for q, text in made.golden.queries.items() if "northern" in text or "pier" in text
    ]
    assert set(made.golden.qrels[query]) == {"a", "twin", "overlap"}
    asked = made.golden.queries[query]
    assert set(words(asked)) < set(words(SENTENCE))
    whole = known_items(store, kinds=["sentence"], per_kind=9, drop=0)
    assert any(folded(SENTENCE) == folded(text) for text in whole.golden.queries.values())


def test_near_duplicates_of_the_source_count_though_they_lack_the_title():
    text = "The harbour opens at six and closes when the last ferry has come in"
    store = store_of(
        [
            {"id": "a", "text": text, "metadata": {"title": "Opening hours"}},
            {"id": "copy", "text": text.upper(), "metadata": {"title": "Copy of 12.docx"}},
            {"id": "far", "text": "Nothing of the kind is written here"},
        ]
    )
    made = known_items(store, kinds=["title"])
    by_text = {text: made.golden.qrels[query] for query, text in made.golden.queries.items()}
    assert by_text["Opening hours"] == {"a": 1, "copy": 1}
    strict = known_items(store, kinds=["title"], filter={"title": "Opening hours"}, twin=1)
    assert list(strict.golden.qrels.values()) == [{"a": 1, "copy": 1}]


def test_a_scope_and_a_filter_confine_what_is_asked_and_what_answers():
    store = store_of(
        [
            {"id": "a", "text": "x", "metadata": {"title": "Tides", "tenant": "acme"}},
            {"id": "b", "text": "y", "metadata": {"title": "Tides", "tenant": "other"}},
        ]
    )
    made = known_items(store.scope(tenant="acme"), kinds=["title"])
    assert list(made.golden.qrels.values()) == [{"a": 1}]
    made = known_items(store, kinds=["title"], filter={"tenant": "other"})
    assert list(made.golden.qrels.values()) == [{"a": 1, "b": 1}]


@pytest.mark.parametrize(
    "arguments",
    [
        {"per_kind": 0},
        {"per_kind": True},
        {"seed": 0.5},
        {"kinds": []},
        {"kinds": "title"},
        {"kinds": ["titles"]},
        {"title_fields": "title"},
        {"drop": 1},
        {"drop": float("nan")},
        {"twin": 0},
        {"twin": 1.1},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(UsageError, match="got"):
        known_items(store_of([{"id": "a", "text": "a fish"}]), **arguments)


def test_a_store_that_gives_no_question_says_so():
    with pytest.raises(UsageError, match=r"No question could be made.*title: 0 of 50"):
        known_items(store_of([{"id": "a", "text": "fish"}]), kinds=["title"])


@pytest.mark.parametrize(
    "text", ["鸬鹚捕鱼以后要晒干翅膀。", "The tide turns at noon every day.", "a"]
)
@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_leaving_words_out_leaves_some(text, share):
    left = with_words_out(text, share, 0)
    before, after = len(pieces(text)), len(pieces(left))
    assert after >= 1
    if text.isascii():
        assert after == max(before - round(share * before), 1)


def test_twins_are_those_a_comparison_of_all_pairs_finds(bilingual):
    records = list(bilingual.records())[:40]
    clipped = [Record(f"{r.id}+", r.text[: int(len(r.text) * 0.85)]) for r in records[::3]]
    everything = [*records, *clipped]
    texts = {record.id: record.text for record in records}

    sets = {record.text: set(words(record.text)) for record in everything}

    def alike(one, other):
        return len(sets[one] & sets[other]) / len(sets[one] | sets[other])

    for likeness in (0.5, 0.8, 1.0):
        expected = {
            name: tuple(r.id for r in everything if alike(text, r.text) >= likeness)
            for name, text in texts.items()
        }
        assert twins_of(texts, everything, likeness=likeness) == expected
    assert any(len(each) > 1 for each in twins_of(texts, everything).values())


def test_no_question_is_asked_twice_across_kinds_and_strata():
    store = store_of(
        [
            {
                "id": str(i),
                "text": f"# Opening hours\npage {i}",
                "metadata": {"title": "Opening hours"},
            }
            for i in range(5)
        ]
    )
    made = known_items(store, kinds=["title", "heading"])
    assert list(made.kinds.values()) == ["title"]


def test_a_stratum_for_each_record_is_no_more_work_than_none(bilingual):
    store = store_of(
        [
            {"id": r.id, "text": r.text, "metadata": {"number": at}}
            for at, r in enumerate(bilingual.records())
        ]
    )
    made = known_items(store, per_kind=7, kinds=["sentence"], stratify="number")
    assert len(made.golden.queries) == 7
    assert len(set(made.sources.values())) == 7
