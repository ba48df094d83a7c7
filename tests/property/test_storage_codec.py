"""Any metadata that is taken comes back equal; any text either decodes or is damage."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cormorant.errors import CorruptionError
from cormorant.storage import decode_metadata, encode_metadata

keys = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    st.sampled_from(["$date", "$datetime", "$$date", "$$$datetime", "$dates", "$"]),
)
offsets = st.integers(-86_399, 86_399).map(lambda s: dt.timezone(dt.timedelta(seconds=s)))


def folded(moment: dt.datetime) -> dt.datetime:
    """Which of two equal clock times it is has no part in equality, and is not kept."""
    return moment.replace(fold=0)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",))),
    st.dates(),
    st.datetimes().map(folded),
    st.datetimes(timezones=offsets).map(folded),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=20,
)


def exactly(value: Any) -> Any:
    """Equality that tells 1 from True and 1.0, and datetimes by their offset."""
    if isinstance(value, dict):
        return {k: exactly(v) for k, v in value.items()}
    if isinstance(value, list):
        return [exactly(v) for v in value]
    return type(value), repr(value)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(keys, values, max_size=5))
def test_metadata_comes_back_equal(metadata: dict[str, Any]) -> None:
    text = encode_metadata(metadata)
    back = decode_metadata(text)
    assert back == metadata
    assert list(back) == list(metadata)
    assert exactly(back) == exactly(metadata)
    json.loads(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from('{}[]":,$adtemi01-. nul\\'), max_size=40))
def test_any_text_decodes_or_is_damage(text: str) -> None:
    try:
        found = decode_metadata(text)
    except CorruptionError:
        return
    assert isinstance(found, dict)
