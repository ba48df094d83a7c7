"""Damaged arrays and batches: refused as damage, or answered from; never another error."""

from __future__ import annotations

import json
import random
import struct
import zlib

import numpy as np
import pytest

from cormorant.errors import CorruptionError, FormatError
from cormorant.filters import parse
from cormorant.index.metadata import Columns
from cormorant.index.text import TextIndex

WORDS = [f"w{i}" for i in range(30)]


def documents(n, seed):
    rng = random.Random(seed)
    return [rng.choices(WORDS, k=rng.choice((0, 3, 12))) for _ in range(n)]


def text_index():
    many = [*documents(60, 1), ["w1"] * 300 + ["w2"] * 600, ["w3"] * 256]
    return TextIndex.empty().append(TextIndex.encode(many))


def bits(array, rng, some):
    """Copies of an array with one bit flipped: the highest and lowest, and some others."""
    for _ in range(some):
        raw = bytearray(array.tobytes())
        at = rng.randrange(len(raw)) if rng.random() < 0.6 else len(raw) - 1
        raw[at] ^= rng.choice((1, 0x40, 0x80))
        yield np.frombuffer(bytes(raw), array.dtype)


def use_text(index):
    asked = index.ask([*WORDS[:8], "w1"], alive=np.arange(index.n) % 7 > 0, k1=0.0)
    asked.search(k=5)
    asked.spread()
    asked.score(np.arange(index.n))
    for slot in range(index.n):
        asked.matches(slot)
    index.ask(WORDS).search(k=5)
    index.contains_all(["w1", "w2"])
    for change in (
        lambda: index.take(np.arange(0, index.n, 2)),
        index.to_arrays,
        lambda: index.append(TextIndex.encode(documents(3, 2))).to_arrays(),
    ):
        change()


def only_damage(work):
    """True if it was found."""
    said = ""
    try:
        work()
    except (CorruptionError, FormatError) as error:  # of a flipped bit in a version
        said = str(error)
    assert not said or "check(repair=True)" in said or "later one" in said
    return bool(said)


@pytest.mark.parametrize("name", sorted(text_index().to_arrays()))
def test_a_flipped_bit_of_the_postings_is_damage_or_harmless(name):
    arrays = text_index().to_arrays()
    rng = random.Random(name)
    for flipped in bits(arrays[name], rng, 60):
        damaged = {**arrays, name: flipped}
        if only_damage(lambda damaged=damaged: TextIndex.from_arrays(damaged)):
            continue
        index = TextIndex.from_arrays(damaged)
        found = only_damage(lambda index=index: use_text(index))
        problems = index.problems()
        assert problems or not found
        grown = index.append(TextIndex.encode(documents(3, 2)))
        assert grown.problems() or not problems


@pytest.mark.parametrize("value", [-1, 1 << 62, -(1 << 62), -(1 << 63)])
@pytest.mark.parametrize("name", ["offsets", "term_offsets", "slots", "big_at"])
def test_a_number_far_out_is_damage(name, value):
    arrays = text_index().to_arrays()
    held = arrays[name]
    for at in {0, len(held) // 2, len(held) - 1}:
        far = held.copy()
        far[at] = np.clip(value, np.iinfo(held.dtype).min, np.iinfo(held.dtype).max)
        try:
            index = TextIndex.from_arrays({**arrays, name: far})
        except CorruptionError:
            continue
        assert index.problems()
        assert only_damage(lambda index=index: index.take(np.arange(0, index.n, 2)))
        assert only_damage(index.to_arrays)


def sealed(body):
    return struct.pack("<4sI", b"CTB1", zlib.crc32(body)) + body


def test_a_batch_of_postings_with_a_fitting_checksum_is_checked_all_the_same():
    body = TextIndex.encode(documents(20, 3))[8:]
    base = text_index()
    assert base.append(sealed(body)).n == base.n + 20
    rng = random.Random(4)
    found = 0
    for flipped in bits(np.frombuffer(body, np.uint8), rng, 300):
        blob = sealed(flipped.tobytes())
        if only_damage(lambda blob=blob: base.append(blob)):
            found += 1
        else:
            use_text(base.append(blob))
    assert found > 100
    for shape in [(1 << 31,) * 4, (0, 0, 0, 0), (1, 0, 0, 0), (20, 1 << 31, 1, 1)]:
        crafted = struct.pack("<IIII5B3x", *shape, 4, 4, 4, 4, 4)
        with pytest.raises(CorruptionError, match="batch of postings"):
            base.append(sealed(crafted + b"\xff" * 40))
    for size in (0, 3, 8, 255):
        with pytest.raises(CorruptionError, match="batch of postings"):
            base.append(sealed(body[:16] + bytes([size]) + body[17:]))


RECORDS = [
    {
        "year": 2000 + i,
        "lang": ["en", "zh", "de"][i % 3],
        "title": f"title {i} é中",
        "price": i / 7,
        "big": (1 << 70) + i,
        "at": f"2024-01-{i % 28 + 1:02d}",
        "tags": ["a", f"t{i}", None, i % 2 == 0],
        "deep": {"er": i} if i % 5 else {},
    }
    for i in range(45)
]
ASKED = [
    {"year": {"$between": [2003, 2020]}},
    {"lang": {"$in": ["en", "zh", "x"]}},
    {"title": {"$gte": "title 2"}},
    {"title": {"$like": "%é%"}},
    {"title": {"$like": "title 1%"}},
    {"title": {"$in": [f"title {i} é中" for i in range(20)]}},
    {"price": {"$lt": 3.0}},
    {"big": {"$gt": 1 << 69}},
    {"at": {"$gte": "2024-01-05"}},
    {"at": {"$like": "2024%"}},
    {"tags": {"$contains": "t4"}},
    {"tags": {"$contains": True}},
    {"tags": None},
    {"deep.er": {"$exists": True}},
    {"deep.er": {"$ne": 7}},
]


def use_columns(columns):
    """Each on its own: one refusal must not hide another error."""
    alive = np.arange(columns.n) % 7 > 0
    steps = [
        *(lambda one=one: columns.mask(parse(one)) for one in ASKED),
        columns.fields,
        lambda: columns.fields(alive),
        lambda: columns.take(np.arange(0, columns.n, 2)),
        columns.to_arrays,
        lambda: columns.append(Columns.encode(RECORDS[:3])).to_arrays(),
    ]
    return sum([only_damage(step) for step in steps])


@pytest.mark.parametrize(
    "name", sorted(Columns.empty().append(Columns.encode(RECORDS)).to_arrays())
)
def test_a_flipped_bit_of_the_columns_is_damage_or_harmless(name):
    arrays = Columns.empty().append(Columns.encode(RECORDS)).to_arrays()
    rng = random.Random(name)
    for flipped in bits(arrays[name], rng, 60 if len(arrays[name]) else 0):
        damaged = {**arrays, name: flipped}
        if not only_damage(lambda damaged=damaged: Columns.from_arrays(damaged)):
            use_columns(Columns.from_arrays(damaged))


def test_a_batch_of_columns_is_checked():
    blob = Columns.encode(RECORDS)
    base = Columns.empty().append(Columns.encode(RECORDS[:9]))
    assert use_columns(base.append(blob)) == 0
    found = 0
    for flipped in bits(np.frombuffer(blob, np.uint8), random.Random(5), 300):
        damaged = flipped.tobytes()
        if only_damage(lambda damaged=damaged: base.append(damaged)):
            found += 1
        else:
            use_columns(base.append(damaged))
    assert found > 50
    assert use_columns(base) == 0


@pytest.mark.parametrize(
    "garbage",
    [
        b"CMC1" + b"\xff" * 60,
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"u1", (1 << 64) - 1) + b"{}",
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"u1", 1 << 62) + b"{}",
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"O8", 1) + b"12345678",
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"M8", 1) + b"12345678",
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"\xff\xff", 1) + b"12345678",
        b"CMC1" + struct.pack("<I4s2sQ", 1, b"meta", b"zz", 1) + b"12345678",
    ],
)
def test_garbage_instead_of_columns_is_damage(garbage):
    assert only_damage(lambda: Columns.empty().append(garbage))


def described(meta):
    return {
        **Columns.empty().append(Columns.encode(RECORDS)).to_arrays(),
        "meta": np.frombuffer(meta if isinstance(meta, bytes) else json.dumps(meta).encode(), "u1"),
    }


@pytest.mark.parametrize(
    "meta",
    [
        b"[" * 100_000,
        b'{"version": 1, "n": ' + b"9" * 5000 + b', "fields": {}}',
        {"version": 1, "n": 1 << 40, "fields": {}},
        {"version": 1, "n": True, "fields": {}},
        {"version": 1, "n": 1.0, "fields": {}},
        {"version": 1, "n": 1, "fields": []},
    ],
)
def test_a_description_of_nonsense_is_damage(meta):
    assert only_damage(lambda: Columns.from_arrays(described(meta)))


@pytest.mark.parametrize(
    "field",
    [
        None,
        [],
        {},
        {"ints": None},
        {"ints": [[0, 1]]},
        {"ints": [[0, 1], ["u1", 0, 1], ["u1", 0, 1]]},
        {"ints": [[0, 1], ["u1", 0, 2]]},
        {"ints": [[0, 1], ["u1", -1, 1]]},
        {"ints": [[0, 1], ["u1", 0, True]]},
        {"ints": [[0, 1], ["f8", 0, 1]]},
        {"ints": [[0, 1], ["O", 0, 1]]},
        {"ints": [[0, 1], [["u1"], 0, 1]]},
        {"ints": [[0, 1], ["u1", 1 << 80, 1]]},
        {"ints": [[0, 1 << 80], ["u1", 0, 1 << 80]]},
        {"ints": [[44, 2], ["u1", 0, 2]]},
        {"ints": [["f8", 0, 2], ["u1", 0, 2]]},
        {"floats": [[0, 1], ["u1", 0, 1]]},
        {"texts": [[0, 1], ["u1", 0, 1]]},
        {"texts": [[0, 1], ["u1", 0, 1], ["u1", 0, 0], ["u1", 0, 0]]},
        {"texts": [[0, 1], ["u1", 0, 1], ["u1", 0, 3], ["f8", 0, 1]]},
        {"nulls": [[0, 46]]},
        {"nulls": [["a", 1]]},
        {"else": [[0, 1]]},
    ],
)
def test_a_field_of_nonsense_is_damage(field):
    columns = Columns.from_arrays(described({"version": 1, "n": 45, "fields": {"x": field}}))
    assert only_damage(lambda: columns.mask(parse({"x": 1})))
    assert only_damage(columns.fields)
    assert only_damage(columns.to_arrays)
