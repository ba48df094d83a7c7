"""Is this the embedder the store's vectors were made with?

A model's name proves nothing: the same name is served in several configurations, and
two models of the same size fit the same store and turn its answers into noise. So a store
keeps the vectors of eight probe texts. Whoever brings an embedder embeds the probes again
(:func:`cormorant.langchain.embeddings.fingerprint`), and the *minimum* cosine decides: each
probe is there for a change that leaves most of the others alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cormorant.errors import CorruptionError, EmbeddingError, EmbeddingMismatch

__all__ = ["PROBES", "SAME", "VARIANT", "Fingerprint", "Verdict", "compare", "require_same"]

SAME: Final = 0.995
"""Minimum cosine of one and the same embedder. Measured: batching moves 1 - cosine by 1e-7,
int8 storage by 2e-5, lower-casing by .035 (docs/decisions/0020-local-embedder.md)."""

VARIANT: Final = 0.95
"""Minimum cosine at which a refused embedder is called a variant of the stored one."""

_PROBE_SET: Final = 1  # counts up when PROBES changes: vectors of other texts do not compare

_BIRDS = """\
A cormorant sits on a mooring post and holds its wings out to dry. Its feathers take up water,
so it sinks deeper than a duck and hunts below the surface, driven by its feet alone. It follows
the fish along the bottom, turns faster than they do, and comes up with one across the bill.
Fishermen on two rivers learned to work with the bird long ago: a loose ring around the throat
keeps the large fish from going down, the small ones are its wages, and a lamp at the bow draws
the shoal together. At dusk the boats drift in a line and nobody speaks. The colony nests in old
trees that stand half dead above the marsh, white with droppings, loud from March until the
young have left. A nest holds three or four pale blue eggs. Both parents sit on them, and both
bring food, which the chicks take out of the open throat of the old bird. In a hard winter the
lakes freeze over and the flocks move down to the coast, where the tide keeps the channels open.
Gulls wait beside them for what they drop, and herons stand along the edge in the reeds. Counting
them is simple work on a clear evening, since they come home in lines, low over the water, and
settle on the same branches as the night before."""
_LEDGERS = """\
The second half of this text is about something else, so that a model which reads the beginning
alone gives another vector than a model which reads to the end. A ledger records what a company
owes and what it is owed. Every entry is written twice, once on the left and once on the right,
and at the close of the month both columns must add up to the same amount. If they do not, the
clerk looks for a difference that can be divided by nine, because two digits that changed places
leave such a difference behind. Invoices are matched with orders and with the notes of the
warehouse; what matches is paid within thirty days, and what does not goes back with a question.
Depreciation spreads the price of a machine over the years of its use. Interest is due at the end
of each quarter, at the rate the contract names, on the sum that was outstanding. Auditors draw a
sample, follow each item from the receipt to the balance sheet, and write down what they could
not follow. Tax is computed on profit after wages, rent, energy and repairs, and paid in advance
by estimate. A budget says in autumn what the next year may cost; the variance report says every
month how far that was wrong, by department and by account, with one sentence of explanation for
each line above the limit. When the books are closed, the figures are locked, copied to another
building and kept for ten years, although hardly anybody will open them again."""
_STEEL = """\
Steel is poured at fifteen hundred degrees and rolled while it is still red. The strip runs
through six stands, each a little narrower than the one before, and leaves the last of them at
the speed of a train. Water cools it, a shear cuts it, a crane stacks it in the yard by grade and
thickness. A sample from every coil is pulled until it breaks, and the curve is filed with its
number. Scrap goes back into the furnace together with lime, which floats on the melt as slag
and carries the phosphorus away. The furnace is lined anew after some hundred heats; the masons
work inside it, in turns of twenty minutes, while the brick is still warm. What the plant makes in
a day would cover the road from here to the harbour, and most of it is on a ship by the weekend,
bound for places where it becomes bridges, cans, rails, car doors and the hulls of other ships.
The noise never stops, and people who live nearby say that they only notice it when it does."""

PROBES: Final[tuple[str, ...]] = (
    "WHAT IS THE CAPITAL OF FRANCE, AND WHO IS MAYOR OF PARIS?",
    'Well... no! (Or: yes?) -- "perhaps"; it\'s 3.5% off: [see p. 12], e.g. A/B & C*D?!',
    "def add(a: int, b: int) -> int:\n    # carry\n    return (a ^ b) + 2 * (a & b)\n",
    "鸬鹚潜入水中捕鱼,然后站在木桩上晾干翅膀。合同约定的付款期限是三十天。",
    "鸕鶿潛入水中捕魚,然後站在木樁上晾乾翅膀。合約約定的付款期限是三十天。",
    "Ticket ERR_1042 in libFooBar v0.3.7-rc2 (CUDA 12.1), see #4421 and user_id=9f8b3c1e.",
    "   \t padding   around \n\n and   between    the words   \n  ",
    f"{_BIRDS}\n\n{_LEDGERS}\n\n{_STEEL}",
)
"""Upper case, punctuation, code, Chinese simplified and traditional, an identifier, padding
spaces, and a text of over 600 words that changes its subject (a shorter reading window shows)."""

_NAMES: Final = (
    "upper case",
    "punctuation",
    "code",
    "Chinese, simplified",
    "Chinese, traditional",
    "identifier",
    "padding spaces",
    "over 600 words",
)

_DAMAGED: Final = (
    "The embedder's fingerprint in the store is damaged: {}. Vectors and texts are kept "
    "elsewhere; `Store.check()` says whether they are whole."
)

Kind: TypeAlias = Literal["same", "renamed", "variant", "other", "dimension", "incomparable"]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """What an embedder makes of the probes.

    Only directions are kept: a model that returns the same vectors at another length is
    the same model under cosine.

    Attributes:
        name: Of the embedder, as :func:`cormorant.langchain.embeddings.identity` gives it.
        dim: Numbers per vector.
        vectors: float32, shape (8, dim), the document side of ``PROBES``, rows
            L2-normalised; a row the embedder made zero stays zero.
        query: float32, shape (dim,), the query side of the first probe, L2-normalised;
            None if it was not taken. Catches a query prefix that was forgotten.
        probe_set: Which texts were embedded.

    Raises:
        EmbeddingError: If the vectors are not finite, not (8, dim), or all zero.
    """

    name: str
    dim: int
    vectors: NDArray[np.float32]
    query: NDArray[np.float32] | None = None
    probe_set: int = _PROBE_SET

    def __post_init__(self) -> None:
        # Another release's probes may be more or fewer; they are compared by name alone.
        count = len(PROBES) if self.probe_set == _PROBE_SET else len(self.vectors)
        vectors = self._directions("vectors", self.vectors, (count, self.dim))
        if not vectors.any():
            raise EmbeddingError(
                f"The embedder {self.name!r} made only zero vectors of the probe texts, so nothing "
                "it embeds can be told apart. Check its configuration.",
                model=self.name,
            )
        object.__setattr__(self, "vectors", vectors)
        if self.query is not None:
            query = self._directions("query", self.query, (self.dim,))
            object.__setattr__(self, "query", query)

    def _directions(
        self, what: str, given: ArrayLike, shape: tuple[int, ...]
    ) -> NDArray[np.float32]:
        # float64 on the way: squares of large float32 values overflow.
        rows = np.asarray(given, dtype=np.float64)
        if rows.shape != shape:
            raise EmbeddingError(
                f"The fingerprint's {what} must have the shape {shape}; got {rows.shape} from "
                f"{self.name!r}. Embed cormorant.store.PROBES, one vector per text.",
                model=self.name,
            )
        if not np.isfinite(rows).all():
            raise EmbeddingError(
                f"The embedder {self.name!r} returned NaN or infinite numbers for a probe text; "
                "only finite vectors can be stored or searched. Check its configuration.",
                model=self.name,
            )
        largest = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
        rows = rows / np.where(largest > 0, largest, 1.0)
        norms = np.linalg.norm(rows, axis=-1, keepdims=True)
        unit: NDArray[np.float32] = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        unit.setflags(write=False)
        return unit

    def to_json(self) -> dict[str, Any]:
        """JSON values: vectors as base64 of little-endian float16.

        Unit vectors lose about 1e-7 of cosine by it, far below the threshold.
        """
        return {
            "name": self.name,
            "dim": self.dim,
            "probe_set": self.probe_set,
            "vectors": _encode(self.vectors),
            "query": None if self.query is None else _encode(self.query),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Fingerprint:
        """Read what :meth:`to_json` wrote.

        Raises:
            CorruptionError: If it is something else.
        """
        try:
            name, dim, probe_set = stored["name"], stored["dim"], stored["probe_set"]
            if not isinstance(name, str) or type(dim) is not int or type(probe_set) is not int:
                raise CorruptionError(_DAMAGED.format(f"its heading is {(name, dim, probe_set)!r}"))
            query = stored["query"]
            return cls(
                name=name,
                dim=dim,
                vectors=_decode(stored["vectors"]).reshape(-1, dim),
                query=None if query is None else _decode(query),
                probe_set=probe_set,
            )
        except (KeyError, TypeError, ValueError, EmbeddingError) as error:
            raise CorruptionError(_DAMAGED.format(repr(error))) from error


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is it the same embedder?

    Attributes:
        same: Whether the store's vectors and this embedder's may be compared.
        kind: ``same``; ``renamed`` (same vectors, another name); ``variant`` (near: another
            configuration, quantisation or prefix); ``other``; ``dimension``;
            ``incomparable`` (the stored probes are another release's: name and dimension
            alone were checked, and ``same`` says whether they agree).
        min_cosine: The lowest over the probes; None if no cosine was taken.
        probe: Which probe moved most; None if no cosine was taken.
        says: The verdict in one sentence.
    """

    same: bool
    kind: Kind
    min_cosine: float | None
    probe: str | None
    says: str


def compare(stored: Fingerprint, fresh: Fingerprint) -> Verdict:
    """Is ``fresh`` the embedder that ``stored`` was taken from?

    A different name with the same vectors is accepted and said: a model is reached
    through several classes and aliases, and the vectors are the proof.

    Args:
        stored: What the store remembers.
        fresh: What was taken from the embedder at hand.

    Returns:
        The verdict; never raises for a difference.
    """
    if stored.dim != fresh.dim:
        says = (
            f"The store's embedder {stored.name!r} makes vectors of {stored.dim} numbers, "
            f"{fresh.name!r} makes {fresh.dim}."
        )
        return Verdict(same=False, kind="dimension", min_cosine=None, probe=None, says=says)
    if stored.probe_set != fresh.probe_set:
        same = stored.name == fresh.name
        says = (
            f"The store's fingerprint was taken with probe set {stored.probe_set}, this one with "
            f"{fresh.probe_set}: only names and dimensions were compared, {stored.name!r} with "
            f"{fresh.name!r}."
        )
        return Verdict(same=same, kind="incomparable", min_cosine=None, probe=None, says=says)
    cosines = _cosines(stored, fresh)
    worst = int(cosines.argmin())
    lowest = float(cosines[worst])
    probe = _NAMES[worst] if worst < len(PROBES) else "query side"
    figures = f"minimum cosine {lowest:.4f} over the probes (at: {probe}), needed {SAME}"
    kind: Kind
    if lowest >= SAME:
        kind = "same" if stored.name == fresh.name else "renamed"
        named = "" if kind == "same" else f" It was {stored.name!r}, now it is {fresh.name!r}."
        says = f"The same embedder: {figures}.{named}"
    elif lowest >= VARIANT:
        kind = "variant"
        says = (
            f"A variant of the same model: stored {stored.name!r}, got {fresh.name!r}, {figures}."
        )
    else:
        kind = "other"
        says = f"Another embedder: stored {stored.name!r}, got {fresh.name!r}, {figures}."
    return Verdict(same=lowest >= SAME, kind=kind, min_cosine=lowest, probe=probe, says=says)


def require_same(
    stored: Fingerprint, fresh: Fingerprint, *, accept_variant: bool = False
) -> Verdict:
    """Refuse an embedder that is not the stored one.

    Args:
        stored: What the store remembers.
        fresh: What was taken from the embedder at hand.
        accept_variant: Take a variant of the same model (minimum cosine of at least .95) too.

    Returns:
        The verdict, for a note where the name differs or a variant was accepted.

    Raises:
        EmbeddingMismatch: Says what was stored, what came, how far apart and what to do.
    """
    verdict = compare(stored, fresh)
    if verdict.same or (accept_variant and verdict.kind == "variant"):
        return verdict
    todo = (
        f"Use the embedder the store was built with ({stored.name!r}), or build a new store "
        "with this one: vectors of two embedders cannot be compared."
    )
    if verdict.kind == "variant":
        todo = (
            "If a quantisation, a prefix or a setting was changed on purpose, accept_variant=True "
            f"takes it, at some loss of quality. Otherwise use {stored.name!r} as it was, or "
            "build a new store with this one."
        )
    elif verdict.kind == "other" and stored.name == fresh.name:
        todo = (
            "Both have one name: its settings or the model behind it have changed, or its vectors "
            "are random, as FakeEmbeddings' are. Random ones need check_embedder=False, and find "
            f"nothing by meaning. {todo}"
        )
    raise EmbeddingMismatch(f"{verdict.says} {todo}")


def _cosines(stored: Fingerprint, fresh: Fingerprint) -> NDArray[np.float64]:
    """One cosine per probe, then the query side's if both have it."""
    a, b = stored.vectors, fresh.vectors
    if stored.query is not None and fresh.query is not None:
        a, b = np.vstack((a, stored.query)), np.vstack((b, fresh.query))
    cosines: NDArray[np.float64] = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    zero_a, zero_b = ~a.any(axis=1), ~b.any(axis=1)
    # Zero on both sides is agreement (a model without Chinese may say nothing there);
    # zero on one side is a difference, which the product 0 already says.
    cosines[zero_a & zero_b] = 1.0
    return cosines


def _encode(vectors: NDArray[np.float32]) -> str:
    return base64.b64encode(vectors.astype("<f2").tobytes()).decode("ascii")


def _decode(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f2").astype(np.float32)
