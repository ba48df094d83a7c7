"""Metadata comes back equal, or is refused with where, what and what else."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from cormorant import defaults
from cormorant.errors import CorruptionError, RecordError
from cormorant.storage import MAX_DEPTH, decode_metadata, encode_metadata


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


def roundtrip(metadata: Any) -> dict[str, Any]:
    return decode_metadata(encode_metadata(metadata))


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "鸬鹚 \u0000 \U0001f426 \u2028",
        0,
        -7,
        2**63,
        10**40,
        1.5,
        -0.0,
        1e-308,
        0.1,
        True,
        False,
        None,
        [],
        {},
        [1, "a", None, [2.5, {"x": []}]],
        {"a": {"b": {"c": 1}}},
        dt.date(2024, 2, 29),
        dt.date.min,
        dt.datetime(2024, 5, 1, 12, 30, 15, 123456),
        dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC),
        dt.datetime(2024, 5, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))),
        dt.datetime.max,
        [dt.date(2024, 1, 1), {"at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}],
    ],
)
def test_what_goes_in_comes_back(value: object) -> None:
    back = roundtrip({"v": value})["v"]
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_a_datetime_keeps_whether_it_has_an_offset() -> None:
    back = roundtrip(
        {"naive": dt.datetime(2024, 1, 1), "aware": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)}
    )
    assert back["naive"].tzinfo is None
    assert back["aware"].utcoffset() == dt.timedelta(0)


def test_a_named_zone_keeps_its_offset() -> None:
    summer = dt.datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Vienna"))
    back = roundtrip({"t": summer})["t"]
    assert back == summer
    assert back.utcoffset() == dt.timedelta(hours=2)


@pytest.mark.parametrize(
    "table",
    [
        {"$date": "2024-01-01"},
        {"$date": 5},
        {"$datetime": "never"},
        {"$$date": "x"},
        {"$$$datetime": {"$date": 1}},
        {"$date": {"$date": {"$datetime": None}}},
        {"$date": "2024-01-01", "more": 1},
        {"date": "2024-01-01"},
        {"$dates": 1},
        {"$": 1},
    ],
)
def test_a_users_own_table_may_look_like_a_tag(table: dict[str, Any]) -> None:
    assert roundtrip(table) == table
    assert roundtrip({"in": [table]}) == {"in": [table]}


def test_relatives_of_plain_types_become_plain() -> None:
    back = roundtrip(
        MappingProxyType(
            {
                "tuple": (1, (2,)),
                "colour": Colour.RED,
                "level": Level.HIGH,
                Colour.RED: 1,
                "f32": np.float32(0.5),
                "f64": np.float64(0.1),
                "i8": np.int8(-3),
                "u64": np.uint64(2**64 - 1),
                "flag": np.True_,
                "str": np.str_("s"),
            }
        )
    )
    assert back == {
        "tuple": [1, [2]],
        "colour": "red",
        "level": 3,
        "red": 1,
        "f32": 0.5,
        "f64": 0.1,
        "i8": -3,
        "u64": 2**64 - 1,
        "flag": True,
        "str": "s",
    }
    assert {type(v) for v in back.values()} == {list, str, int, float, bool}
    assert type(next(iter(roundtrip({Colour.RED: 1})))) is str


def test_every_decoding_is_a_fresh_copy() -> None:
    text = encode_metadata({"a": [1]})
    decode_metadata(text)["a"].append(2)
    assert decode_metadata(text) == {"a": [1]}


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"a": {1, 2}}, r"metadata\['a'\] is of type set.*sorted"),
        ({"a": [0, {"b": b"x"}]}, r"metadata\['a'\]\[1\]\['b'\] is of type bytes.*Decode"),
        ({"a": np.zeros(2)}, r"metadata\['a'\] is of type ndarray.*tolist"),
        ({"a": Decimal(1)}, r"Decimal.*float"),
        ({"a": UUID(int=1)}, r"UUID.*str"),
        ({"a": dt.time(1)}, r"time.*isoformat"),
        ({"a": dt.timedelta(1)}, r"timedelta.*total_seconds"),
        ({"a": np.datetime64("2024-01-01")}, r"datetime64"),
        ({"a": object()}, r"object.*Accepted: strings"),
        ({"a": 1j}, r"complex"),
        ({"a": float("nan")}, r"metadata\['a'\] is nan"),
        ({"a": [float("-inf")]}, r"metadata\['a'\]\[0\] is -inf"),
        ({"a": np.float32("inf")}, r"metadata\['a'\] is inf"),
        ({1: "a"}, r"metadata has the key 1 of type int; keys must be strings"),
        ({"a": {None: 1}}, r"metadata\['a'\] has the key None"),
        ({"a": {("x",): 1}}, r"of type tuple"),
        ({"a": "\ud800"}, r"metadata\['a'\] has a lone surrogate"),
        ({"a": [{"\udfff": 1}]}, r"metadata\['a'\]\[0\]: the key '\\udfff' has a lone surrogate"),
        ({"a": 10**5000}, r"number that cannot be written"),
        ([], r"metadata must be a dict; got list"),
        ("text", r"metadata must be a dict; got str"),
        (None, r"metadata must be a dict; got NoneType"),
    ],
)
def test_what_cannot_be_stored_is_refused(metadata: Any, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        encode_metadata(metadata)


def test_depth_is_limited_and_cycles_are_refused() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = {"a": deep}
    assert roundtrip(deep) == deep
    with pytest.raises(RecordError, match="deeper than 32 levels, or contains itself"):
        encode_metadata({"b": deep, "c": [deep]})
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(RecordError, match="contains itself"):
        encode_metadata({"a": cycle})


def test_size_is_limited_in_bytes() -> None:
    room = defaults.MAX_METADATA_BYTES - len('{"a":""}')
    assert roundtrip({"a": "x" * room}) == {"a": "x" * room}
    with pytest.raises(RecordError, match=f"at most {defaults.MAX_METADATA_BYTES}"):
        encode_metadata({"a": "x" * (room + 1)})
    with pytest.raises(RecordError, match="bytes as JSON"):
        encode_metadata({"a": "鸬" * (room // 3 + 1)})


def test_a_subclass_that_is_no_instant_is_refused() -> None:
    class Never(dt.datetime):
        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = dt.datetime.__hash__

    with pytest.raises(RecordError, match="of type Never"):
        encode_metadata({"a": Never(2024, 1, 1)})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        "null",
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":{"$date":"yesterday"}}',
        '{"a":{"$date":7}}',
        '{"a":{"$datetime":null}}',
        '{"$date":"2024-01-01"}',
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"a":' + "[" * 200_000,
    ],
)
def test_damaged_text_is_damage(text: str) -> None:
    with pytest.raises(CorruptionError, match="metadata is damaged"):
        decode_metadata(text)
