"""Whatever happened to the sources: a synced store equals one made at once, and nothing is
embedded that was known."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

import cormorant
from cormorant import defaults
from cormorant.ingest.syncing import sync

sys.path.insert(0, str(Path(__file__).parents[1]))
from synclab import CountingEmbeddings, Paragraphs, Tree, contents

NAMES = ["a", "b", "c", "d/e"]
WORDS = ["tide", "reed", "heron", "boat", "ebb", "鸬鹚"]

texts = st.lists(st.sampled_from(WORDS), max_size=6).map("\n\n".join)
names = st.sampled_from(NAMES)
edits = st.one_of(
    st.tuples(st.just("write"), names, texts),
    st.tuples(st.just("empty"), names),
    st.tuples(st.just("touch"), names),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("copy"), names, names),
    st.tuples(st.just("swap"), names, names),
    st.tuples(st.just("recut"), st.integers(0, 1)),
)


def edit(tree, chunker, kind, *how):
    if kind == "recut":
        chunker.limit = how[0]
    elif kind == "write":
        tree.write(*how)
    elif how[0] not in tree.files:
        return
    elif kind == "empty":
        tree.write(how[0], "")
    elif kind in {"touch", "remove"}:
        getattr(tree, kind)(how[0])
    elif kind == "rename" and how[0] != how[1]:
        tree.rename(*how)
    elif kind == "copy":
        tree.write(how[1], tree.files[how[0]])
    elif kind == "swap" and how[1] in tree.files:
        one, other = tree.files[how[0]], tree.files[how[1]]
        tree.write(how[0], other)
        tree.write(how[1], one)


def chunks_of(tree):
    return {text for file in tree.files.values() for text in file.split("\n\n") if text.strip()}


def synced(tree, store, embedder, chunker, **how):
    return sync(
        tree.sources(), store, embedder, chunker=chunker, name="tree", allow_empty=True, **how
    )


@pytest.mark.parametrize("piece", [2, 1024], ids=["pieces", "whole"])
@settings(deadline=None, max_examples=25)
@given(rounds=st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=5))
@example(rounds=[[("write", "a", "tide\n\nreed"), ("write", "b", "boat")], [("swap", "a", "b")]])
@example(rounds=[[("write", "a", "tide\n\nreed\n\nebb")], [("rename", "a", "b")]])
def test_a_synced_store_equals_one_made_at_once(piece, rounds):
    with pytest.MonkeyPatch.context() as patch:
        # Few chunks to a transaction: sources of several pieces, which are most of the work.
        patch.setattr(defaults, "SYNC_CHUNKS", piece)
        tree, chunker, embedder = Tree(), Paragraphs(), CountingEmbeddings()
        with cormorant.open(":memory:") as store:
            for round in rounds:
                before = {text for text, _, _ in contents(store).values()}
                already = embedder.embedded
                for kind, *how in round:
                    edit(tree, chunker, kind, *how)
                reckoned = synced(tree, store, embedder, chunker, dry_run=True)
                report = synced(tree, store, embedder, chunker)
                changed = chunks_of(tree) - before
                assert embedder.embedded - already == len(changed) == report.embedded
                assert reckoned.embedded == report.embedded
                assert reckoned.tokens == report.tokens
                counts = ("added", "updated", "moved", "skipped", "deleted")
                assert all(getattr(reckoned, n) == getattr(report, n) for n in counts)
                with cormorant.open(":memory:") as fresh:
                    synced(tree, fresh, CountingEmbeddings(), chunker)
                    assert contents(store) == contents(fresh)
                again = synced(tree, store, embedder, chunker)
                assert again.skipped == len(tree.files)
                assert again.embedded == again.added == again.updated == again.deleted == 0
                repaired = synced(tree, store, embedder, chunker, verify=True)
                assert repaired.embedded == repaired.chunks_added == repaired.chunks_updated == 0


@settings(deadline=None, max_examples=20)
@given(
    rounds=st.lists(st.lists(edits, min_size=1, max_size=3), min_size=1, max_size=3),
    after=st.integers(0, 6),
)
def test_stopped_anywhere_the_next_sync_ends_in_the_same_state(rounds, after):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "SYNC_CHUNKS", 2)
        tree, chunker, embedder = Tree(), Paragraphs(), CountingEmbeddings()
        with cormorant.open(":memory:") as store:
            for round in rounds:
                for kind, *how in round:
                    edit(tree, chunker, kind, *how)
                asked = iter(range(after))
                before = {text for text, _, _ in contents(store).values()}
                known = before & chunks_of(tree)
                counts = embedder.counts.copy()
                synced(
                    tree,
                    store,
                    embedder,
                    chunker,
                    stop=lambda asked=asked: next(asked, None) is None,
                )
                assert not known & set(embedder.counts - counts)
            synced(tree, store, embedder, chunker)
            with cormorant.open(":memory:") as fresh:
                synced(tree, fresh, CountingEmbeddings(), chunker)
                assert contents(store) == contents(fresh)
                assert len(store.document_ids("$cormorant/")) == len(
                    fresh.document_ids("$cormorant/")
                )
