"""The column mask says what the scalar oracle says, for every record, filter and history."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta, timezone
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cormorant.errors import FilterError
from cormorant.filters import FIELD_OPERATORS, conjoin, escape_field, parse
from cormorant.index.metadata import Columns
from cormorant.index.metadata import frozen as layout

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
    st.sampled_from(
        [date(2024, 1, 1), datetime(9999, 12, 31, tzinfo=timezone(-timedelta(hours=9)))]
    ),
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
    """As through a file: read-only arrays, as narrow as they go however few they are."""
    with mock.patch.object(layout, "_WORTHWHILE", 1):
        arrays = {name: array.copy() for name, array in columns.to_arrays().items()}
    for array in arrays.values():
        array.flags.writeable = False
    return Columns.from_arrays(arrays)


def agree(columns, records, texts, filters):
    assert columns.n == len(records)
    for flt in filters:
        expected = [
            flt.matches(record, text, text_match=text_match)
            for record, text in zip(records, texts, strict=True)
        ]
        got = columns.mask(flt, text_mask=text_mask(texts))
        assert got.dtype == np.bool_
        assert got.tolist() == expected, flt.to_dict()


def some_clauses(fields, pool, rng, count):
    """Random pairs of a field and an operator, with values of the pool that the operator takes."""
    filters = []
    while len(filters) < count:
        operator = rng.choice(list(FIELD_OPERATORS))
        one, two = rng.choice(pool), rng.choice(pool)
        operand = rng.choice([one, one, [one], [one, two], [one, two], pool, [], True, False])
        try:
            filters.append(parse({escape_field(rng.choice(fields)): {operator: operand}}))
        except FilterError:
            continue
    return filters


@st.composite
def worlds(draw):
    """A few names and a few values, so that records and filters meet; and a history.

    Each step grows one of the versions so far, which need not be the newest, and may
    then compact or freeze the new one.
    """
    pool = draw(st.lists(SCALARS, min_size=2, max_size=5))
    names = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))
    value = st.sampled_from(pool)
    nested = st.recursive(
        value,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(names), inner, max_size=2)
        ),
        max_leaves=4,
    )
    metadata = st.dictionaries(st.sampled_from(names), st.one_of(value, nested), max_size=3)
    steps = st.tuples(
        st.integers(0, 2),
        st.lists(metadata, max_size=4),
        st.sampled_from(["grow", "take", "freeze"]),
        st.lists(st.booleans(), min_size=8, max_size=8),
    )
    fields = [*names, f"{names[0]}.{names[-1]}", draw(st.sampled_from(FIELDS))]
    texts = [value for value in pool if isinstance(value, str)]
    pool += [
        part for text in texts for part in (text[:1] + "%", f"%{text[1:2]}%{text[-1:]}", text[1:2])
    ]
    rng = random.Random(draw(st.integers(0, 2**16)))
    few = some_clauses([*fields, "b"], [*pool, "sibling"], rng, 60)
    return few, draw(st.lists(steps, min_size=1, max_size=6))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_mask_equals_oracle_in_every_version(world):
    filters, steps = world
    versions = [(Columns.empty(), [])]
    for back, batch, then, kept in steps:
        parent, records = versions[max(0, len(versions) - 1 - back)]
        sibling = [{**record, "b": ["sibling", i]} for i, record in enumerate(batch[::-1])]
        columns, records = parent.append(Columns.encode(batch)), records + batch
        siblings = parent.append(Columns.encode(sibling)), records[: parent.n] + sibling
        if then == "take":
            keep = np.flatnonzero([kept[i % len(kept)] for i in range(columns.n)])
            columns, records = columns.take(keep), [records[i] for i in keep]
        elif then == "freeze":
            columns = frozen(columns)
        versions += [siblings, (columns, records)]
    # Only now, since a later version might have changed an earlier one.
    for columns, records in versions[1:]:
        agree(columns, records, [""] * len(records), filters)
        agree(frozen(columns), records, [""] * len(records), filters)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(METADATA, max_size=6), st.lists(FILTERS, min_size=1, max_size=4))
def test_combined_filters_equal_the_oracle(records, sources):
    texts = [["ab", "a b", "b a 鸬鹚", ""][i % 4] for i in range(len(records))]
    columns = Columns.empty().append(Columns.encode(records))
    agree(columns, records, texts, [parse(source) for source in sources])


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


EDGES = [
    0, 1, -1, 2, 127, 128, 255, 256, -128, -129, 32_768, 65_535, 65_536, 2**31, 2**32 - 1,
    *(2**power + step for power in (24, 53, 63, 64) for step in (-1, 0, 1)),
    *(-(2**power) + step for power in (24, 53, 63, 64) for step in (-1, 0, 1)),
    10**30, -(10**400),
]  # fmt: skip
REALS = [
    0.0, -0.0, 0.5, -1.5, 0.1, 1e-320, 1e300, float("inf"), float("-inf"), 2.0**24 + 1,
    *(sign * 2.0**power for sign in (1, -1) for power in (7, 24, 53, 63, 64)),
]  # fmt: skip
SINGLES = [float(np.float32(real)) for real in (0.1, 1e-45, 3.4e38, *REALS) if abs(real) < 3.4e38]
COMPARISONS = {
    "$eq": lambda value, bound: value == bound,
    "$ne": lambda value, bound: value != bound,
    "$gt": lambda value, bound: value > bound,
    "$gte": lambda value, bound: value >= bound,
    "$lt": lambda value, bound: value < bound,
    "$lte": lambda value, bound: value <= bound,
}


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 127, 128, 255] * 8,
        [-128, 0, 127] * 12,
        [-(2**31), 2**31 - 1, 5] * 12,
        [n for n in EDGES if -(2**63) <= n < 2**63],
        EDGES,
        SINGLES * 3,
        REALS * 2,
        [*EDGES, *REALS],
        [2**53, 2**53 + 1],
    ],
    ids=["u1", "i1", "i4", "i8", "beyond", "f4", "f8", "mixed", "two"],
)
def test_numbers_compare_exactly(values):
    growing = Columns.empty().append(Columns.encode([{"v": value} for value in values]))
    bounds = [*EDGES, *REALS, *SINGLES]
    for columns in (growing, frozen(growing)):
        for operator, compare in COMPARISONS.items():
            for bound in bounds:
                got = columns.mask(parse({"v": {operator: bound}})).tolist()
                assert got == [compare(value, bound) for value in values], (operator, bound)
        for members in (bounds, bounds[1::2], bounds[:3], [2**53 + 1, 0.1]):
            got = columns.mask(parse({"v": {"$in": members}})).tolist()
            assert got == [value in members for value in values]
