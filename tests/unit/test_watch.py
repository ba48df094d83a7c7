"""Watching: works on a change that has settled, once, and survives what fails."""

from __future__ import annotations

import pytest

from cormorant.errors import ConfigError
from cormorant.ingest import watch


def watched(sights, works=()):
    """Watch what is seen look by look; returns at which looks work was done."""
    seen, results, done = iter(sights), iter(works), []
    looks = 0

    def look():
        nonlocal looks
        looks += 1
        sight = next(seen)
        if isinstance(sight, OSError):
            raise sight
        return sight

    def work():
        done.append(looks)
        return next(results, True)

    watch(look, work, interval_s=1, wait=lambda seconds: looks >= len(sights) - 1)
    return done


def test_it_works_at_once_and_then_on_a_change():
    # The first look is before the loop: the second finds the same, and work begins.
    assert watched("aaaaabbbb") == [2, 7]


def test_a_change_is_taken_up_once_it_keeps_still():
    assert watched("aaabcdefgggg") == [2, 10]


def test_a_folder_that_cannot_be_looked_at_is_a_change_that_may_pass():
    assert watched(["a", "a", OSError("gone"), "a", "a", "b", "b", "b"]) == [2, 7]


def test_what_failed_is_done_again_after_waits_that_double():
    assert watched("a" * 20, works=[False, False, False, True]) == [2, 4, 8, 16]


def test_a_change_ends_the_wait_after_a_failure():
    assert watched("aaaaaaa" + "bbb", works=[False, False, True]) == [2, 4, 9]


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_an_interval_that_is_none_is_refused(interval):
    with pytest.raises(ConfigError, match="interval_s"):
        watch(lambda: 0, lambda: True, interval_s=interval)
