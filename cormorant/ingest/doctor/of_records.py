"""Are the records themselves sound? Checks that look at the store alone, or mostly."""

from __future__ import annotations

from statistics import median
from typing import Final

from cormorant.ingest.doctor.diagnosis import Said, said
from cormorant.ingest.doctor.facts import Facts, share
from cormorant.ingest.doctor.pipeline import Pipeline

__all__ = [
    "chunk_size",
    "copied_texts",
    "cut_mid_sentence",
    "duplicates",
    "empty_chunks",
    "enum_drift",
    "fixed_splitter",
    "normalised",
    "over_long",
]

_SMALL, _LARGE = 100, 2_000  # characters of a median chunk: a sentence, and about 500 tokens
_OVER_LONG: Final = 8_000  # characters: about 2,000 tokens, more than most local models read
_CUT: Final = 0.2
_TWINS: Final = 0.01
_FEW: Final = 20  # chunks, below which a share says nothing
_EQUAL, _EQUAL_CUT = 0.6, 0.5  # of chunks that are as long as the longest, and end anywhere


def chunk_size(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Are chunks of a size that can be found and read?"""
    lengths = [length for length, _ in facts.lengths]
    if not lengths:
        return said("unknown", "there are no records")
    middle = median(lengths)
    evidence = f"the median chunk has {middle:,.0f} characters (accepted: {_SMALL} to {_LARGE:,})"
    if middle < _SMALL:
        return said("failed", evidence, [id for _, id in sorted(facts.lengths)])
    if middle > _LARGE:
        return said("failed", evidence, [id for _, id in sorted(facts.lengths, reverse=True)])
    return said("passed", evidence)


def cut_mid_sentence(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Do chunks end where sentences do?"""
    if not facts.examined:
        return said("unknown", "there are no records")
    part = share(len(facts.cut), facts.examined)
    evidence = (
        f"{len(facts.cut):,} of {facts.examined:,} chunks ({part:.0%}) end within a sentence "
        f"(accepted: {_CUT:.0%})"
    )
    return said("failed" if part > _CUT else "passed", evidence, facts.cut if part > _CUT else [])


def fixed_splitter(facts: Facts, pipeline: Pipeline) -> Said:
    """Are texts cut with regard to what they say?"""
    if pipeline.chunker == "fixed":
        return said("failed", "the pipeline cuts every so many characters, wherever that is")
    if pipeline.chunker:
        return said("passed", f"the pipeline cuts by {pipeline.chunker!r}")
    if facts.examined < _FEW:
        return said("unknown", f"{facts.examined} chunks are too few to tell how they were cut")
    longest = max(length for length, _ in facts.lengths)
    equal = share(sum(n >= longest * 0.98 for n, _ in facts.lengths), facts.examined)
    cut = share(len(facts.cut), facts.examined)
    evidence = f"{equal:.0%} of chunks are as long as the longest, {cut:.0%} end within a sentence"
    failed = equal >= _EQUAL and cut >= _EQUAL_CUT
    return said("failed" if failed else "passed", evidence, facts.cut if failed else [])


def duplicates(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Is each text in the store once?"""
    part = share(len(facts.twins), facts.examined)
    evidence = (
        f"{len(facts.twins):,} of {facts.examined:,} chunks repeat the text of another ({part:.1%};"
        f" accepted: {_TWINS:.0%})"
    )
    return said("failed" if part > _TWINS else "passed", evidence, facts.twins)


def empty_chunks(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Has every record a text?"""
    evidence = f"{len(facts.empty):,} of {facts.examined:,} records have no text"
    return said("failed" if facts.empty else "passed", evidence, facts.empty)


def over_long(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Is every chunk short enough to be embedded whole?"""
    found = sorted(((n, id) for n, id in facts.lengths if n > _OVER_LONG), reverse=True)
    evidence = f"{len(found):,} chunks have more than {_OVER_LONG:,} characters"
    if found:
        evidence += f", the longest {found[0][0]:,}"
    return said("failed" if found else "passed", evidence, [id for _, id in found])


def normalised(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Do vectors differ in direction alone?"""
    with_vector = facts.examined - len(facts.bare)
    if not with_vector:
        return said("unknown", "no record has a vector")
    if facts.store.metric == "cosine":
        return said("passed", "the metric is cosine, under which the store normalises")
    evidence = (
        f"{len(facts.skewed):,} of {with_vector:,} vectors are not of length 1, and the metric is "
        f"{facts.store.metric}: longer ones are favoured"
    )
    if not facts.skewed:
        return said("passed", f"all {with_vector:,} vectors are of length 1")
    return said("failed", evidence, facts.skewed)


def enum_drift(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Is each metadata value written in one way?"""
    found: list[str] = []
    for name, field in sorted(facts.fields.items()):
        spellings: dict[str, list[str]] = {}
        for value in field.values or ():
            spellings.setdefault(value.strip().casefold(), []).append(value)
        found += [
            f"{name}: " + ", ".join(map(repr, sorted(each)))
            for each in spellings.values()
            if len(each) > 1
        ]
    evidence = f"{len(found):,} values are written in several ways, which no filter takes for one"
    return said("failed", evidence, found) if found else said("passed", "no value is")


def copied_texts(facts: Facts, pipeline: Pipeline) -> Said:  # noqa: ARG001 - every check's
    """Are metadata about the text, and not the text again?"""
    found = {name: field.copies for name, field in facts.fields.items() if field.copies}
    if not found:
        return said("passed", "no metadata field repeats its record's text")
    told = ", ".join(f"{name} in {len(ids):,} records" for name, ids in sorted(found.items()))
    return said(
        "failed",
        f"whole texts are copied into metadata: {told}; they reach prompts and fill columns",
        [id for ids in found.values() for id in ids],
    )
