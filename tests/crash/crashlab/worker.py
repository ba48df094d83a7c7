"""The writer process: does a plan and acknowledges each call on stdout once it has returned.

    python -m crashlab.worker FOLDER SEED LENGTH [--whole] [--start N] [--skip N] [--retry]
        [--background]

It says ``ready``, waits for a line on stdin, and then, a line each: ``ack open``, ``ack N``. A call
that fails gives ``fail N TYPE MESSAGE``; then it stops or, with ``--retry``, says what this process
sees now (``seen N before|after|neither|refused``), opens the store again and repeats the call.
An error that is none of Cormorant's own gives ``crash N TYPE MESSAGE``. It ends with ``ack close``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cormorant.errors import CormorantError, StoreError
from cormorant.store import Store
from crashlab.judge import contents, differences
from crashlab.plan import (
    Model,
    Op,
    backup_folder,
    in_the_background,
    make_plan,
    open_store,
    perform,
    states,
)


class Stop(Exception):
    """The plan cannot go on."""


def say(line: str) -> None:
    """One line in one write: an acknowledgement is whole or absent."""
    os.write(1, line.replace("\n", " ").encode() + b"\n")


class Worker:
    """A plan under way."""

    def __init__(self, folder: Path, ops: list[Op], *, retry: bool, skip: int | None) -> None:
        self.folder = folder
        self.ops = ops
        self.skip = skip
        self.retry = retry
        self.states = states(ops)
        self.store: Store | None = None

    def run(self) -> None:
        """The whole plan."""
        if not self._try("open", self._open) and not (self.retry and self._try("open", self._open)):
            raise Stop
        todo = list(zip(self.ops, self.states, self.states[1:], strict=False))[self.skip :]
        if self.skip is not None and todo:
            self._clear(todo[0][0])
        for op, before, after in todo:
            if self._try(str(op.place), partial(self._perform, op)):
                continue
            if not self.retry:
                raise Stop
            say(f"seen {op.place} {self._seen(before, after)}")
            self._clear(op)
            if not self._try(str(op.place), partial(self._again, op)):
                raise Stop
        if self.store is not None and not self._try("close", self.store.close):
            raise Stop

    def _open(self) -> None:
        self.store = open_store(self.folder)

    def _perform(self, op: Op) -> None:
        if self.store is None:
            raise Stop
        self.store = perform(self.store, op, self.folder)

    def _clear(self, op: Op) -> None:
        """Take away what is left of a backup that is to be made again."""
        if op.kind == "backup":
            shutil.rmtree(backup_folder(self.folder, op), ignore_errors=True)

    def _again(self, op: Op) -> None:
        if self.store is not None:
            self.store.close()
        self._open()
        self._perform(op)

    def _try(self, name: str, work: Callable[[], None]) -> bool:
        """Do it and acknowledge it, or say how it failed."""
        try:
            work()
        except StoreError as error:
            say(f"fail {name} {type(error).__name__} {error}")
            return False
        except Exception as error:  # noqa: BLE001 - any other type is what the suite looks for
            traceback.print_exc()
            say(f"crash {name} {type(error).__name__} {error}")
            return False
        say(f"ack {name}")
        return True

    def _seen(self, before: Model, after: Model) -> str:
        """Which state does this process see after a call that failed?"""
        if self.store is None:
            return "refused"
        try:
            found = contents(self.store)
        except CormorantError as error:
            return f"refused {type(error).__name__} {error}"
        if not differences(found, before):
            return "before"
        return "neither" if differences(found, after) else "after"


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("length", type=int)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--skip", type=int)
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--background", action="store_true")
    given = parser.parse_args()
    if given.background:
        in_the_background()
    ops = make_plan(given.seed, given.length, whole=given.whole, start=given.start)
    worker = Worker(given.folder, ops, retry=given.retry, skip=given.skip)
    say("ready")
    sys.stdin.readline()
    try:
        worker.run()
    except Stop:
        say("stopped")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
