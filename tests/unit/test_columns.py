"""Metadata columns: growth, versions, files, damage. (Semantics: test_filters*.py.)"""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime

import numpy as np
import pytest

from cormorant.errors import CorruptionError, FilterError, FormatError, RecordError, UsageError
from cormorant.filters import parse
from cormorant.index.metadata import Columns, FieldInfo
from cormorant.index.metadata.blob import pack, unpack
from cormorant.index.metadata.dictionary import GrowingStrings, SortedStrings, encode_strings
from cormorant.index.metadata.runs import Run, Slots


def columns_of(*batches):
    columns = Columns.empty()
    for batch in batches:
        columns = columns.append(Columns.encode(batch))
    return columns


def hits(columns, source):
    return np.flatnonzero(columns.mask(parse(source))).tolist()


def test_empty():
    columns = Columns.empty()
    assert columns.n == 0
    assert columns.fields() == {}
    assert columns.mask(parse({"a": {"$ne": 1}})).tolist() == []
    assert Columns.from_arrays(columns.to_arrays()).n == 0
    assert columns.take(np.empty(0, dtype=np.int64)).n == 0
    assert columns_of([], [{}], []).n == 1


def test_append_shares_what_is_there(monkeypatch):
    records = [{"year": 2000 + i % 20, "doc": f"d{i}", "tags": ["a", "b"]} for i in range(5_000)]
    columns = columns_of(records)
    moved = []
    extend = Run.extend

    def counted(run, values):
        longer = extend(run, values)
        moved.append(0 if np.shares_memory(longer.view, run.view) else run.n)
        return longer

    monkeypatch.setattr(Run, "extend", counted)
    appended = 3_000
    for i in range(appended):
        columns = columns.append(Columns.encode([{"year": i, "doc": f"e{i}", "tags": ["c", "a"]}]))
    assert columns.n == len(records) + appended
    # Four runs of at most 2 n elements grow by half each time they are full: a few moves in all.
    assert sum(1 for n in moved if n) < 20
    assert sum(moved) < 4 * 3 * 2 * columns.n
    assert hits(columns, {"doc": "e2999"}) == [columns.n - 1]


def test_append_after_open_does_not_copy_the_mapped_base(monkeypatch):
    base = Columns.from_arrays(
        columns_of([{"n": i, "s": f"x{i}"} for i in range(2_000)]).to_arrays()
    )
    seen = []
    extend = Run.extend

    def counted(run, values):
        seen.append(run.n)
        return extend(run, values)

    monkeypatch.setattr(Run, "extend", counted)
    longer = base.append(Columns.encode([{"n": -1, "s": "new"}]))
    assert max(seen) == 0
    assert hits(longer, {"n": {"$lt": 1}}) == [0, 2_000]
    assert hits(longer, {"s": {"$in": ["new", "x7"]}}) == [7, 2_000]
    assert hits(base, {"s": "new"}) == []


def test_versions_do_not_see_each_other():
    parent = columns_of([{"a": 1, "s": "p"}])
    left = parent.append(Columns.encode([{"a": 2, "s": "left"}]))
    right = parent.append(Columns.encode([{"a": 3, "s": "right"}, {"b": 1}]))
    assert (parent.n, left.n, right.n) == (1, 2, 3)
    assert hits(left, {"s": "right"}) == hits(right, {"s": "left"}) == []
    assert hits(left, {"a": 2}) == hits(right, {"a": 3}) == [1]
    assert hits(parent, {"s": {"$like": "%"}}) == [0]
    assert hits(left, {"b": {"$exists": True}}) == []
    assert b"left" not in b"".join(array.tobytes() for array in right.to_arrays().values())


def test_threads_that_grow_one_parent_get_their_own_children():
    parent = columns_of([{"s": f"v{i % 7}", "n": i} for i in range(50)])
    blobs = [Columns.encode([{"s": f"t{t}-{i}", "n": t} for i in range(20)]) for t in range(8)]
    children = {}
    gate = threading.Barrier(len(blobs))

    def grow(t):
        gate.wait()
        child = parent
        for _ in range(5):
            child = child.append(blobs[t])
        children[t] = child

    threads = [threading.Thread(target=grow, args=(t,)) for t in range(len(blobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for t, child in children.items():
        assert child.n == 150
        assert hits(child, {"s": {"$like": f"t{t}-%"}}) == list(range(50, 150))
        assert hits(child, {"n": t, "s": {"$like": "t%"}}) == list(range(50, 150))


def test_nothing_is_decoded_at_open_and_only_what_is_asked_for_later():
    records = [{f"f{i}": f"value {i} {j}" for i in range(20)} for j in range(50)]
    arrays = columns_of(records).to_arrays()
    read = []

    class Watched(dict):
        def __getitem__(self, name):
            read.append(name)
            return super().__getitem__(name)

    columns = Columns.from_arrays(Watched(arrays))
    assert read == ["meta"]
    assert hits(columns, {"f3": "value 3 7"}) == [7]
    assert sorted(columns._base.fields._ready) == ["f3"]


def test_works_on_mapped_read_only_files(tmp_path):
    records = [
        {"s": f"é{i}", "n": i, "x": i / 3, "t": ["a", f"b{i % 3}"], "d": date(2024, 1, 1 + i % 9)}
        for i in range(200)
    ]
    mapped = {}
    for name, array in columns_of(records).to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    columns = Columns.from_arrays(mapped)
    for source in (
        {"s": {"$gte": "é5"}},
        {"n": {"$between": [3, 9]}},
        {"t": {"$all": ["a", "b1"]}},
        {"d": {"$in": ["2024-01-03"]}},
        {"x": {"$lt": 1}},
        {"s": {"$contains": "9"}},
    ):
        flt = parse(source)
        assert columns.mask(flt).tolist() == [flt.matches(record) for record in records]
    longer = columns.append(Columns.encode([{"n": 5}]))
    assert hits(longer, {"n": 5}) == [5, 200]
    assert longer.take(np.array([5, 200])).n == 2


def test_arrays_are_narrow_and_sorted():
    columns = columns_of(
        [{"year": 1990 + i % 30, "f": i / 2, "s": f"t{i % 4}"} for i in range(1_000)]
    )
    arrays = columns.to_arrays()
    assert set(arrays) == {"meta", "u1", "u2", "f4", "i8"}
    assert len(arrays["i8"]) < 10  # a handful of values is not worth narrowing
    assert arrays["u2"].nbytes == 2_000  # the years
    assert arrays["f4"].nbytes == 4_000
    wide = columns_of([{"f": 0.1 + i} for i in range(100)]).to_arrays()
    assert set(wide) == {"meta", "f8"}


def test_many_distinct_values_in_lists():
    records = [{"n": i * 3, "x": i / 4, "s": f"k{i:05d}"} for i in range(3_000)]
    for columns in (columns_of(records), Columns.from_arrays(columns_of(records).to_arrays())):
        for field, members in (
            ("n", [*range(0, 4_000, 7), 1.5, 10**30, float("inf"), "x", None, True]),
            ("x", [i / 8 for i in range(200)] + [0.1, 10**400]),
            ("s", [f"k{i:05d}" for i in range(0, 5_000, 11)] + ["", "zz", "鸬"]),
            ("s", ["k00001", "k02999", "k03000"] * 5),
        ):
            flt = parse({field: {"$in": members}})
            assert columns.mask(flt).tolist() == [flt.matches(record) for record in records]


def test_take_leaves_nothing_of_what_was_dropped():
    columns = columns_of([{"s": "keep"}, {"s": "secret", "only": "hidden"}], [{"s": "tail-secret"}])
    kept = columns.take(np.array([0]))
    held = b"".join(array.tobytes() for array in kept.to_arrays().values())
    assert b"secret" not in held
    assert b"hidden" not in held
    assert b"only" not in held
    assert kept.n == 1
    assert list(kept.fields()) == ["s"]


@pytest.mark.parametrize("keep", [[1, 0], [0, 0], [-1], [3], [0, 3]])
def test_take_refuses_slots_out_of_order_or_out_of_range(keep):
    with pytest.raises(UsageError, match="ascending"):
        columns_of([{}, {}, {}]).take(np.array(keep))


def test_encode_refuses_what_cannot_be_stored():
    with pytest.raises(RecordError, match=r"'a\.b' holds a set"):
        Columns.encode([{"a": {"b": {1, 2}}}])
    for record in ({"a": "\ud800"}, {"a": ["\udc00"]}):
        with pytest.raises(RecordError, match="surrogate"):
            Columns.encode([record])


def test_mask_is_the_callers_own_and_takes_only_parsed_filters():
    columns = columns_of([{"a": 1}])
    mask = columns.mask(parse({"a": 1}))
    mask[:] = False
    assert hits(columns, {"a": 1}) == [0]
    texts = np.array([True])
    got = columns.mask(parse({"$text": "x"}), text_mask=lambda words: texts)
    got[:] = False
    assert texts.tolist() == [True]
    with pytest.raises(FilterError, match="parsed filter"):
        columns.mask({"a": 1})


def test_damage_is_found():
    arrays = columns_of([{"a": i, "s": f"x{i}"} for i in range(50)]).to_arrays()
    with pytest.raises(CorruptionError):
        Columns.from_arrays({})
    with pytest.raises(CorruptionError):
        Columns.from_arrays({**arrays, "meta": np.frombuffer(b"{", dtype=np.uint8)})
    with pytest.raises(CorruptionError):
        Columns.from_arrays({**arrays, "meta": np.frombuffer(b"[1]", dtype=np.uint8)})
    short = Columns.from_arrays({**arrays, "u1": arrays["u1"][:60]})
    with pytest.raises(CorruptionError, match="damaged"):
        short.mask(parse({"s": "x1"}))
    meta = json.loads(arrays["meta"].tobytes())
    meta["version"] = 99
    newer = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    with pytest.raises(FormatError, match="99"):
        Columns.from_arrays({**arrays, "meta": newer})
    meta["version"], meta["n"] = 1, 10
    fewer = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    with pytest.raises(CorruptionError, match="damaged"):
        Columns.from_arrays({**arrays, "meta": fewer}).mask(parse({"a": 1}))


def test_damaged_blobs_are_found():
    blob = Columns.encode([{"a": 1, "s": "x"}])
    assert Columns.empty().append(blob).n == 1
    for damaged in (
        b"",
        b"CMC",
        blob[:-1],
        blob + b"\0",
        b"XXX1" + blob[4:],
        blob[:8] + b"\xff" * 40,
    ):
        with pytest.raises(CorruptionError):
            Columns.empty().append(damaged)
    with pytest.raises(FormatError, match="later one"):
        Columns.empty().append(b"CMC9" + blob[4:])


def test_blob_round_trip():
    arrays = {
        "meta": np.arange(5, dtype=np.uint8),
        "f8": np.array([1.5, -0.0]),
        "u4": np.empty(0, "u4"),
    }
    back = unpack(pack(arrays))
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


def test_fields():
    columns = columns_of(
        [
            {"lang": "en", "year": 2020, "tags": ["a", "b"], "nested": {"deep": True}},
            {"lang": "zh", "year": 2.5, "tags": [], "at": "2024-05-01T00:00:00Z"},
        ],
        [{"lang": "en", "year": 10**30, "x": None, "at": datetime(2023, 1, 1, tzinfo=UTC)}],
    )
    for version in (columns, Columns.from_arrays(columns.to_arrays())):
        fields = version.fields()
        assert fields["lang"] == FieldInfo(("text",), 3, 2, ("en", "zh"))
        assert fields["year"] == FieldInfo(("number",), 3, None, (), 2.5, 10**30)
        assert fields["tags"].present == 2
        assert set(fields["tags"].values) == {"a", "b"}
        assert fields["nested"] == FieldInfo((), 1, None, ())
        assert fields["nested.deep"] == FieldInfo(("boolean",), 1, 1, (True,))
        assert fields["x"] == FieldInfo(("null",), 1, None, ())
        assert fields["at"].kinds == ("date",)
        assert fields["at"].low == datetime(2023, 1, 1, tzinfo=UTC)
        assert fields["at"].high == datetime(2024, 5, 1, tzinfo=UTC)
        alive = version.fields(np.array([False, True, False]))
        assert alive["lang"] == FieldInfo(("text",), 1, 1, ("zh",))
        assert alive["year"] == FieldInfo(("number",), 1, None, (), 2.5, 2.5)
        assert "nested.deep" not in alive
        assert "x" not in alive


def test_fields_does_not_count_identifiers():
    info = columns_of([{"id": f"{i:x}"} for i in range(10_500)]).fields()["id"]
    assert info == FieldInfo(("text",), 10_500, None, ())


def test_both_forms_of_a_dictionary_give_the_same_codes():
    words = ["", "a", "aa", "ab", "b", "é", "鸬", "鸬鹚", "🐟", "\uffff"]
    ordered = sorted(words)
    sorted_form = SortedStrings(*encode_strings(ordered))
    growing, codes = GrowingStrings().extend(words[::-1])
    assert codes.tolist() == list(range(len(words)))
    assert sorted_form.all() == ordered

    def chosen(strings, codes):
        if isinstance(codes, np.ndarray) and codes.dtype == np.bool_:
            codes = np.flatnonzero(codes)
        everything = strings.all()
        return sorted(everything[code] for code in codes)

    for prefix in ("", "a", "鸬", "🐟", "zz"):
        expected = [word for word in ordered if word.startswith(prefix)]
        for strings in (sorted_form, growing):
            found = strings.where(lambda word: word.startswith(prefix), prefix)  # noqa: B023
            assert chosen(strings, found) == expected
    for source in (
        {"$gt": "a"},
        {"$gte": "a"},
        {"$lt": "é"},
        {"$lte": "🐟"},
        {"$between": ["aa", "b"]},
    ):
        flt = parse({"f": source})
        expected = [word for word in ordered if flt.matches({"f": word})]
        for strings in (sorted_form, growing):
            assert chosen(strings, strings.within(flt.operand)) == expected
    for wanted in (["a", "zz"], [*words, "x"], []):
        expected = sorted(set(wanted) & set(words))
        for strings in (sorted_form, growing):
            assert chosen(strings, strings.find(wanted)) == expected


def test_slots():
    assert Slots.of(np.array([3, 4, 5])).contiguous
    assert not Slots.of(np.array([3, 5])).contiguous
    assert not Slots.of(np.array([3, 3, 5])).contiguous  # as many as the range, with a repeat
    grown = Slots.of(np.array([0, 1])).extend(Slots.of(np.array([0, 1])), 2)
    assert grown.contiguous
    assert grown.array.tolist() == [0, 1, 2, 3]
    gap = grown.extend(Slots.of(np.array([1])), 4)
    assert not gap.contiguous
    assert gap.array.tolist() == [0, 1, 2, 3, 5]
    assert gap.end == 6
    assert grown.array.tolist() == [0, 1, 2, 3]
