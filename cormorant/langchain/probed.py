"""What did this embedder make of the probes, the one time it was asked in this process?

Many requests may meet a cold embedder at once; one of them probes and the others wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from concurrent.futures import Future

from cormorant.langchain.embedder import Embedder
from cormorant.langchain.embeddings.probing import afingerprint, fingerprint
from cormorant.store.fingerprint import Fingerprint

__all__ = ["aprobed", "probed"]


class _Abandoned(Exception):
    """Whoever was probing was cancelled."""


class _Probing(Future[Fingerprint]):
    """A fingerprint that is being taken, or was.

    Args:
        awaited: Whether it is taken on an event loop, which a blocking caller on the same
            loop must not wait for.
    """

    def __init__(self, *, awaited: bool) -> None:
        super().__init__()
        self.awaited = awaited
        # From now on nobody who gives up waiting can cancel it for the others.
        self.set_running_or_notify_cancel()


_lock = threading.Lock()
_known: dict[tuple[int, int], _Probing] = {}  # by process, since a fork copies what never ends


def probed(embedder: Embedder) -> Fingerprint:
    """The embedder's fingerprint, taken once per process and embedder object.

    Raises:
        EmbeddingError: If the embedder fails; the next call tries again.
    """
    if embedder.fingerprint is None:
        embedder.fingerprint = _probed(embedder)
    return embedder.fingerprint


async def aprobed(embedder: Embedder) -> Fingerprint:
    """Like :func:`probed`, awaiting the embedder's async methods."""
    if embedder.fingerprint is None:
        embedder.fingerprint = await _aprobed(embedder)
    return embedder.fingerprint


def _probed(embedder: Embedder) -> Fingerprint:
    while True:
        probing, mine = _claim(embedder, awaited=False)
        if mine:
            break
        if probing.awaited and not probing.done():
            return fingerprint(embedder)
        with contextlib.suppress(_Abandoned):
            return probing.result()
    try:
        taken = fingerprint(embedder)
    except BaseException as error:
        _fail(embedder, probing, error)
        raise
    probing.set_result(taken)
    return taken


async def _aprobed(embedder: Embedder) -> Fingerprint:
    while True:
        probing, mine = _claim(embedder, awaited=True)
        if mine:
            break
        with contextlib.suppress(_Abandoned):
            return await asyncio.wrap_future(probing)
    try:
        taken = await afingerprint(embedder)
    except BaseException as error:
        _fail(embedder, probing, error)
        raise
    probing.set_result(taken)
    return taken


def _claim(embedder: Embedder, *, awaited: bool) -> tuple[_Probing, bool]:
    """The embedder's probing, and whether it is the caller's to do."""
    key = _key(embedder)
    with _lock:
        probing = _known.get(key)
        if probing is not None:
            return probing, False
        probing = _Probing(awaited=awaited)
        try:
            # An id is used again once its object is gone.
            weakref.finalize(embedder.embedding, _known.pop, key, None).atexit = False
        except TypeError:  # cannot be watched: remembered by nobody, so probed for each store
            return probing, True
        _known[key] = probing
        return probing, True


def _fail(embedder: Embedder, probing: _Probing, error: BaseException) -> None:
    with _lock:
        if _known.get(_key(embedder)) is probing:
            del _known[_key(embedder)]
    probing.set_exception(error if isinstance(error, Exception) else _Abandoned())


def _key(embedder: Embedder) -> tuple[int, int]:
    return os.getpid(), id(embedder.embedding)
