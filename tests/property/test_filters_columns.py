"""The column mask says what the scalar oracle says, for every record, filter and history."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cormorant.filters import conjoin, escape_field, parse
from cormorant.index.metadata import Columns

# Names that meet each other: nested and literally dotted, empty, with a dollar, emoji.
KEYS = ("a", "b", "c", "a.b", "b.c", "", "$a", "\\$a", "🐟", ".", "a.")
FIELDS = (*KEYS, "a.c", "a.b.c", "$a.b", "b.a", "🐟.a", "a..", "zz")
INTS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64 + 1, -(10**30), 255, 256]
    ),
    st.integers(),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 0.1, float(np.float32(0.1)), 2.0**53, 2.0**63, 1e300]),
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False, allow_infinity=True),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "A", "ab", "aB", "1", "a%", "a_b", "é", "鸬鹚", "🐟", "🐟🐟", "\x00"]
    ),
    st.sampled_from(
        [
            "2024-01-01",
            "2024-01-01T00:00:00Z",
            "2024-01-01T08:00+08:00",
            "2024-01-01 00:00:00.000001",
            "2024-02-30",
            "2023-12-31",
            "0001-01-01T00:00:00+14:00",
        ]
    ),
    st.text(max_size=4),
)
ZONES = st.sampled_from([None, UTC, timezone(timedelta(hours=8)), timezone(timedelta(hours=-3))])
DATES = st.one_of(
    st.sampled_from([date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), datetime.max]),
    st.dates(),
    st.datetimes(timezones=ZONES),
)
SCALARS = st.one_of(st.none(), st.booleans(), INTS, FLOATS, TEXTS, DATES)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)
METADATA = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4)
ORDERED = st.one_of(INTS, FLOATS, TEXTS, DATES)
PATTERNS = st.text(alphabet="aAb%_é🐟2-", max_size=5)


@st.composite
def ranges(draw):
    kind = draw(
        st.sampled_from([st.one_of(INTS, FLOATS), st.text(alphabet="abé", max_size=3), DATES])
    )
    low, high = draw(kind), draw(kind)
    for pair in ([low, high], [high, low]):
        try:
            parse({"a": {"$between": pair}})
        except ValueError:
            continue
        return pair
    return [low, low]


CLAUSES = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne", "$contains"]), SCALARS),
    st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ORDERED),
    st.tuples(st.just("$between"), ranges()),
    st.tuples(st.sampled_from(["$in", "$nin", "$any"]), st.lists(SCALARS, max_size=12)),
    st.tuples(st.just("$all"), st.lists(SCALARS, min_size=1, max_size=2)),
    st.tuples(st.sampled_from(["$like", "$ilike"]), PATTERNS),
    st.tuples(st.just("$exists"), st.booleans()),
)
OPERATIONS = st.one_of(
    st.lists(CLAUSES, min_size=1, max_size=2).map(dict),
    CLAUSES.map(lambda clause: {"$not": dict([clause])}),
)
LEAVES = st.one_of(
    st.builds(
        lambda field, operations: {escape_field(field): operations},
        st.sampled_from(FIELDS),
        OPERATIONS,
    ),
    st.builds(lambda field, value: {escape_field(field): value}, st.sampled_from(FIELDS), SCALARS),
    st.sampled_from(["ab", "a b", "鸬鹚"]).map(lambda words: {"$text": words}),
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda key, parts: {key: parts},
            st.sampled_from(["$and", "$or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        inner.map(lambda part: {"$not": part}),
    ),
    max_leaves=4,
)


def text_match(words, text):
    return set(words.split()) <= set(text.split())


def text_mask(texts):
    return lambda words: np.array([text_match(words, text) for text in texts], dtype=bool)


def frozen(columns):
    """Through a file: read-only arrays."""
    arrays = {name: array.copy() for name, array in columns.to_arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False
    return Columns.from_arrays(arrays)


def agree(columns, records, texts, filters):
    assert columns.n == len(records)
    for source in filters:
        flt = parse(source)
        expected = [
            flt.matches(record, text, text_match=text_match)
            for record, text in zip(records, texts, strict=True)
        ]
        got = columns.mask(flt, text_mask=text_mask(texts))
        assert got.dtype == np.bool_
        assert got.tolist() == expected, source


@st.composite
def histories(draw):
    """Batches with what happens after each."""
    return draw(
        st.lists(
            st.tuples(
                st.lists(METADATA, max_size=5),
                st.sampled_from(["go on", "take", "freeze", "fork", "take and freeze"]),
                st.integers(0, 2**16),
            ),
            min_size=1,
            max_size=4,
        )
    )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(), st.lists(FILTERS, min_size=1, max_size=4))
@example(
    [([{"a": 1}, {"a": 2**53 + 1}], "freeze", 0), ([{"a": "x"}, {}], "take", 1)],
    [{"a": {"$gt": 2.0**53}}, {"a": {"$ne": "x"}}],
)
def test_mask_equals_oracle(history, filters):
    columns, records, texts = Columns.empty(), [], []
    for batch, then, seed in history:
        earlier, earlier_records, earlier_texts = columns, list(records), list(texts)
        rng = np.random.default_rng(seed)
        columns = columns.append(Columns.encode(batch))
        records = records + batch
        texts = texts + [str(rng.choice(["ab", "a b", "b a 鸬鹚", ""])) for _ in batch]
        if then.startswith("take"):
            keep = np.flatnonzero(rng.random(columns.n) < 0.6)
            columns = columns.take(keep)
            records = [records[i] for i in keep]
            texts = [texts[i] for i in keep]
        if then.endswith("freeze"):
            columns = frozen(columns)
        if then == "fork":  # another future of the same past
            columns.append(Columns.encode([{"a": "fork", "b": [1, "x"]}]))
            other = columns.append(Columns.encode(batch[::-1]))
            agree(other, records + batch[::-1], texts + [""] * len(batch), filters)
        agree(columns, records, texts, filters)
        agree(earlier, earlier_records, earlier_texts, filters)
    agree(frozen(columns), records, texts, filters)


@settings(max_examples=100, deadline=None)
@given(st.lists(METADATA, max_size=6), FILTERS, FILTERS)
def test_conjoin_never_widens(records, left, right):
    both = conjoin(parse(left), parse(right))
    columns = Columns.empty().append(Columns.encode(records))
    texts = ["ab"] * len(records)
    masks = [
        columns.mask(flt, text_mask=text_mask(texts)) for flt in (both, parse(left), parse(right))
    ]
    assert masks[0].tolist() == (masks[1] & masks[2]).tolist()
    assert columns.mask(conjoin(parse(left), None), text_mask=text_mask(texts)).tolist() == (
        masks[1].tolist()
    )


@settings(max_examples=100, deadline=None)
@given(FILTERS)
def test_written_out_filters_mean_the_same(source):
    flt = parse(source)
    assert parse(flt.to_dict()) == flt
    assert hash(parse(source)) == hash(flt)


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte", "$eq"])
@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.one_of(INTS, FLOATS), min_size=1, max_size=8), bound=st.one_of(INTS, FLOATS)
)
def test_numbers_compare_exactly(operator, values, bound):
    compare = {
        "$gt": lambda v: v > bound,
        "$gte": lambda v: v >= bound,
        "$lt": lambda v: v < bound,
        "$lte": lambda v: v <= bound,
        "$eq": lambda v: v == bound,
    }[operator]
    columns = frozen(Columns.empty().append(Columns.encode([{"v": v} for v in values])))
    got = columns.mask(parse({"v": {operator: bound}})).tolist()
    assert got == [compare(v) for v in values]
