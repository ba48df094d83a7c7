"""When does a watched folder have to be synced again?

By looking at it every two seconds: that works on every file system, network ones and containers'
mounts included, where notifications do not, and costs a walk of the folder. watchfiles and watchdog
would save the walk; a sync walks anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from cormorant import defaults
from cormorant.errors import ConfigError
from cormorant.ranges import check_number

__all__ = ["watch"]

_LONGEST_S: Final = 300.0


def watch(
    look: Callable[[], Hashable],
    work: Callable[[], bool],
    *,
    interval_s: float = defaults.WATCH_INTERVAL_S,
    wait: Callable[[float], bool] | None = None,
) -> None:
    """Work at once, and again whenever what is looked at changed and then kept still.

    Args:
        look: What there is: equal as long as nothing changed. An ``OSError`` counts as a change.
        work: Does the work; False if it failed, and is to be done again. The wait doubles with
            every failure, up to five minutes, unless something changes before.
        interval_s: Seconds between two looks; a change is taken up once two looks in a row are
            alike, so that a file is not read while it is being written.
        wait: Waits so many seconds; True ends the watch. None waits, and never ends it.

    Raises:
        ConfigError: If the interval is not above 0.
    """
    check_number("interval_s", interval_s, 0.01, error=ConfigError)
    waits = _sleep if wait is None else wait
    done: Hashable = object()  # like nothing that can be seen
    before: Hashable = _seen(look)
    patience, again_in = interval_s, 0.0
    while True:
        now = _seen(look)
        still = now == before
        before = now
        again_in -= interval_s
        if still and (now != done or (patience > interval_s and again_in <= 0)):
            failed_before = patience > interval_s and now == done
            if work():
                patience = interval_s
            else:
                patience = min(_LONGEST_S, 2 * (patience if failed_before else interval_s))
            done, again_in = now, patience
        if waits(interval_s):
            return


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _seen(look: Callable[[], Hashable]) -> Hashable:
    try:
        return look()
    except OSError as error:
        return str(error)
