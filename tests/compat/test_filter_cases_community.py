"""The spirit of langchain-community's filter cases, in records and words of our own.

The original 35 run by ``scripts/run_community_filter_cases.py``, which fetches them.
"""

from __future__ import annotations

import pytest

from cormorant.filters import parse
from cormorant.index.metadata import Columns

BIRDS = [
    {
        "bird": "avocet", "ringed": "2019-04-02", "no": 1, "wild": True, "calls": ["kluit", "pip"],
        "mass": 310.0, "risk": 0.25,
    },
    {
        "bird": "booby", "ringed": "2020-11-30", "no": 2, "wild": False, "calls": ["pip", "honk"],
        "mass": 1500.5, "risk": 0.5,
    },
    {
        "bird": "shag", "ringed": "2019-04-02", "no": 3, "wild": True, "calls": ["grunt"],
        "mass": 1900.0, "risk": None,
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # equality, of each type; several fields are a conjunction
        ({"no": 2}, [2]),
        ({"bird": "shag"}, [3]),
        ({"wild": True}, [1, 3]),
        ({"wild": False}, [2]),
        ({"no": 3, "wild": True}, [3]),
        ({"no": 3, "wild": False}, []),
        # comparison, of integers, text by code point, booleans and floats
        ({"no": {"$ne": 2}}, [1, 3]),
        ({"no": {"$gt": 2}}, [3]),
        ({"no": {"$gte": 2}}, [2, 3]),
        ({"no": {"$lt": 2}}, [1]),
        ({"no": {"$lte": 2}}, [1, 2]),
        ({"bird": {"$eq": "booby"}}, [2]),
        ({"bird": {"$ne": "booby"}}, [1, 3]),
        ({"bird": {"$gt": "booby"}}, [3]),
        ({"bird": {"$gte": "booby"}}, [2, 3]),
        ({"bird": {"$lt": "booby"}}, [1]),
        ({"bird": {"$lte": "booby"}}, [1, 2]),
        ({"wild": {"$eq": True}}, [1, 3]),
        ({"wild": {"$ne": True}}, [2]),
        ({"mass": {"$gt": 1500.5}}, [3]),
        ({"mass": {"$gte": 1500.5}}, [2, 3]),
        ({"mass": {"$lt": 310.1}}, [1]),
        ({"mass": {"$lte": 1500.5}}, [1, 2]),
        # logic
        ({"$or": [{"no": 1}, {"bird": "shag"}]}, [1, 3]),
        ({"$and": [{"no": 1}, {"no": 2}]}, []),
        ({"$or": [{"no": 1}, {"no": 2}, {"no": 3}]}, [1, 2, 3]),
        ({"$not": {"wild": True}}, [2]),
        # lists, ranges (a tuple will do) and patterns
        ({"no": {"$between": (2, 3)}}, [2, 3]),
        ({"no": {"$between": (2, 2)}}, [2]),
        ({"bird": {"$in": ["shag", "booby", "auk"]}}, [2, 3]),
        ({"bird": {"$nin": ["shag", "booby"]}}, [1]),
        ({"bird": {"$like": "b%"}}, [2]),
        ({"bird": {"$like": "%a%"}}, [1, 3]),
        ({"bird": {"$ilike": "%OO%"}}, [2]),
        # a value that is null is there, and less than nothing
        ({"risk": {"$lt": 1}}, [1, 2]),
        ({"risk": None}, [3]),
    ],
)
def test_case(source, expected):
    flt = parse(source)
    columns = Columns.empty().append(Columns.encode(BIRDS))
    assert [
        bird["no"] for bird, hit in zip(BIRDS, columns.mask(flt), strict=True) if hit
    ] == expected
    assert [bird["no"] for bird in BIRDS if flt.matches(bird)] == expected
