"""The fingerprint: noise passes, another model or configuration does not."""

from __future__ import annotations

import hashlib
import json
import re
import string
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings, FakeEmbeddings

from cormorant.errors import CorruptionError, EmbeddingError, EmbeddingMismatch
from cormorant.langchain.embeddings import (
    LocalEmbeddings,
    PrefixEmbeddings,
    afingerprint,
    fingerprint,
    sentence_encoder,
)
from cormorant.store.fingerprint import (
    PROBES,
    SAME,
    VARIANT,
    Fingerprint,
    compare,
    require_same,
)

DIM = 64


class Trigrams(Embeddings):
    """A small model of its own: hashed character trigrams, as sensitive to form as a real one."""

    def __init__(self, model="trigrams", seed=0, dim=DIM, before=str, after=np.asarray):
        self.model, self.seed, self.dim = model, seed, dim
        self.before, self.after = before, after

    def _vector(self, text):
        vector = np.zeros(self.dim)
        text = f" {self.before(text)} "
        for at in range(len(text) - 2):
            key = f"{self.seed}{text[at : at + 3]}".encode()
            digest = hashlib.blake2b(key, digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            vector[number % self.dim] += 1 if number >> 63 else -1
        return vector

    def embed_documents(self, texts):
        return np.asarray(self.after(np.array([self._vector(text) for text in texts]))).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def int8(vectors):
    scale = np.abs(vectors).max(axis=1, keepdims=True) / 127
    return np.round(vectors / np.where(scale, scale, 1)) * scale


NOISE = {
    "nothing": np.asarray,
    "batching": lambda v: v * (1 + 2e-7 * np.random.default_rng(1).normal(size=v.shape)),
    "float16": lambda v: v.astype(np.float16).astype(np.float32),
    "bfloat16": lambda v: (v.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(
        np.float32
    ),
    "int8": int8,
    "scaling": lambda v: v * 37.0,
}
CHANGES = {
    "prefix": lambda text: "passage: " + text,
    "lower-casing": str.lower,
    "punctuation stripped": lambda text: text.translate(str.maketrans("", "", string.punctuation)),
    "first 256 words": lambda text: " ".join(text.split()[:256]),
    "first 1,500 characters": lambda text: text[:1500],
    "digits masked": lambda text: re.sub(r"\d", "0", text),
    "no traditional Chinese": lambda text: text.translate(str.maketrans("鸕鶿潛將", "鸬鹚潜将")),
    "ASCII only": lambda text: (
        unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    ),
}


def centred(vectors):
    return vectors - np.random.default_rng(2).normal(size=vectors.shape[1]) * np.abs(vectors).mean()


@pytest.fixture
def stored():
    return fingerprint(Trigrams())


@pytest.mark.parametrize("noise", NOISE)
def test_noise_does_not_trip_it(stored, noise):
    fresh = fingerprint(Trigrams(after=NOISE[noise]))
    verdict = require_same(stored, fresh)
    assert (verdict.same, verdict.kind) == (True, "same")
    assert verdict.min_cosine > 0.9995


@pytest.mark.parametrize("change", [*CHANGES, "centred", "another model"])
def test_a_change_of_the_model_trips_it(stored, change):
    if change == "centred":
        fresh = fingerprint(Trigrams(after=centred))
    elif change == "another model":
        fresh = fingerprint(Trigrams(seed=1))
    elif change == "no traditional Chinese":
        # The one simplification that leaves seven probes alone.
        fresh = fingerprint(Trigrams(before=CHANGES[change]))
        assert (compare(stored, fresh).probe, stored.name) == ("Chinese, traditional", fresh.name)
    else:
        fresh = fingerprint(Trigrams(before=CHANGES[change]))
    assert not compare(stored, fresh).same
    with pytest.raises(EmbeddingMismatch):
        require_same(stored, fresh)


local = pytest.mark.skipif(
    not sentence_encoder.installed(), reason="the extra cormorant[local] is not installed"
)


class Changed(Embeddings):
    """The local model, with texts or vectors changed on the way."""

    def __init__(self, before=str, after=np.asarray):
        self.before, self.after = before, after

    def embed_documents(self, texts):
        vectors = LocalEmbeddings().embed_documents([self.before(text) for text in texts])
        return self.after(np.array(vectors, dtype=np.float32)).tolist()

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture(scope="module")
def real():
    return fingerprint(LocalEmbeddings())


@local
@pytest.mark.parametrize("noise", NOISE)
def test_noise_on_the_local_model(real, noise):
    verdict = compare(real, fingerprint(Changed(after=NOISE[noise])))
    assert (verdict.same, verdict.kind) == (True, "renamed")
    assert verdict.min_cosine > 0.9999


@local
@pytest.mark.parametrize(
    "change", ["prefix", "lower-casing", "punctuation stripped", "first 256 words"]
)
def test_a_changed_configuration_of_the_local_model(real, change):
    assert not compare(real, fingerprint(Changed(before=CHANGES[change]))).same


@local
def test_a_mean_centred_local_model(real):
    mean = real.vectors.mean(axis=0) / 2
    assert not compare(real, fingerprint(Changed(after=lambda v: v - mean))).same


@local
def test_batching_of_the_local_model(real):
    one_by_one = [LocalEmbeddings().embed_query(text) for text in PROBES]
    alone = Fingerprint(real.name, real.dim, np.array(one_by_one), np.array(one_by_one[0]))
    assert compare(real, alone).min_cosine > 0.999999


@local
def test_a_forgotten_query_prefix_is_seen_on_the_query_side(real):
    verdict = compare(real, fingerprint(PrefixEmbeddings(LocalEmbeddings(), "query: ", "")))
    assert (verdict.same, verdict.probe) == (False, "query side")


async def test_async_is_the_same(stored):
    verdict = compare(stored, await afingerprint(Trigrams()))
    assert verdict.kind == "same"
    assert verdict.min_cosine > 0.999999


def test_dimension_is_always_checked(stored):
    fresh = fingerprint(Trigrams(dim=DIM * 2))
    verdict = compare(stored, fresh)
    assert (verdict.same, verdict.kind, verdict.min_cosine) == (False, "dimension", None)
    with pytest.raises(EmbeddingMismatch, match=r"64 numbers.*makes 128.*new store"):
        require_same(stored, fresh, accept_variant=True)


def test_another_name_with_the_same_vectors_is_accepted_and_said(stored):
    verdict = require_same(stored, fingerprint(Trigrams(model="an alias")))
    assert (verdict.same, verdict.kind) == (True, "renamed")
    assert "trigrams" in verdict.says
    assert "an alias" in verdict.says


def turned(stored, cosine):
    """The stored fingerprint with one probe's vector turned away."""
    vectors = np.array(stored.vectors, dtype=np.float64)
    other = np.random.default_rng(3).normal(size=stored.dim)
    other -= (other @ vectors[5]) * vectors[5]
    other /= np.linalg.norm(other)
    vectors[5] = cosine * vectors[5] + np.sqrt(1 - cosine**2) * other
    return Fingerprint("turned", stored.dim, vectors, stored.query)


@pytest.mark.parametrize(
    ("cosine", "kind"),
    [
        (1.0, "renamed"),
        (SAME + 1e-5, "renamed"),
        (SAME - 1e-5, "variant"),
        (VARIANT + 1e-5, "variant"),
        (VARIANT - 1e-5, "other"),
        (0.0, "other"),
        (-1.0, "other"),
    ],
)
def test_the_minimum_decides(stored, cosine, kind):
    verdict = compare(stored, turned(stored, cosine))
    assert verdict.kind == kind
    assert verdict.same == (cosine >= SAME)
    assert verdict.min_cosine == pytest.approx(cosine, abs=1e-6)
    if cosine < 1:
        assert verdict.probe == "identifier"


def test_the_refusal_says_what_was_what_came_how_far_and_what_to_do(stored):
    with pytest.raises(EmbeddingMismatch) as raised:
        require_same(stored, turned(stored, 0.3))
    for said in (stored.name, "'turned'", "0.3000", "identifier", "0.995", "new store"):
        assert said in str(raised.value)
    assert "accept_variant" not in str(raised.value)


def test_a_variant_is_called_so_and_can_be_accepted(stored):
    fresh = turned(stored, 0.97)
    with pytest.raises(EmbeddingMismatch, match=r"variant of the same model.*accept_variant=True"):
        require_same(stored, fresh)
    assert require_same(stored, fresh, accept_variant=True).kind == "variant"
    with pytest.raises(EmbeddingMismatch, match="Another embedder"):
        require_same(stored, turned(stored, 0.9), accept_variant=True)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_probes_that_are_not_finite_are_refused(stored, bad):
    vectors = np.array(stored.vectors)
    vectors[3, 7] = bad
    with pytest.raises(EmbeddingError, match="NaN or infinite") as raised:
        Fingerprint("m", DIM, vectors)
    assert raised.value.model == "m"
    with pytest.raises(EmbeddingError, match="NaN or infinite"):
        Fingerprint("m", DIM, stored.vectors, vectors[3])


def test_all_zero_is_refused():
    with pytest.raises(EmbeddingError, match="only zero vectors"):
        Fingerprint("m", DIM, np.zeros((len(PROBES), DIM)))


def test_zero_on_both_sides_agrees_and_on_one_side_differs(stored):
    vectors = np.array(stored.vectors)
    vectors[3] = 0
    silent = Fingerprint(stored.name, DIM, vectors, stored.query)
    assert compare(silent, silent).min_cosine == pytest.approx(1, abs=1e-6)
    for verdict in (compare(stored, silent), compare(silent, stored)):
        assert (verdict.kind, verdict.min_cosine) == ("other", 0.0)
        assert verdict.probe == "Chinese, simplified"
    assert compare(silent, Fingerprint.from_json(silent.to_json())).same


@pytest.mark.parametrize("shape", [(7, DIM), (9, DIM), (8, DIM - 1), (8 * DIM,), (8, DIM, 1)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(EmbeddingError, match="shape"):
        Fingerprint("m", DIM, np.ones(shape))
    with pytest.raises(EmbeddingError, match="shape"):
        Fingerprint("m", DIM, np.ones((8, DIM)), np.ones(DIM + 1))


def test_vectors_of_any_length_are_kept_as_directions(stored):
    for scale in (1e-30, 1.0, 1e30):
        scaled = Fingerprint("m", DIM, np.asarray(stored.vectors, np.float64) * scale)
        assert scaled.vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(scaled.vectors, axis=1), 1, atol=1e-6)
        assert compare(stored, scaled).same
    with pytest.raises(ValueError, match="read-only"):
        stored.vectors[0, 0] = 1


def test_json_there_and_back(stored):
    text = json.dumps(stored.to_json())
    back = Fingerprint.from_json(json.loads(text))
    assert (back.name, back.dim) == (stored.name, stored.dim)
    assert compare(stored, back).min_cosine > 0.999999
    assert back.to_json() == stored.to_json()
    without = Fingerprint("m", DIM, stored.vectors)
    assert Fingerprint.from_json(without.to_json()).query is None
    assert compare(stored, without).same


@given(
    vectors=arrays(np.float32, (len(PROBES), 12), elements=st.floats(-1e3, 1e3, width=32)),
    name=st.text(max_size=20),
)
def test_what_is_stored_agrees_with_what_was_taken(vectors, name):
    if not vectors.any():
        return
    taken = Fingerprint(name, 12, vectors)
    back = Fingerprint.from_json(json.loads(json.dumps(taken.to_json())))
    verdict = compare(back, taken)
    assert verdict.kind == "same"
    assert verdict.min_cosine > 0.99999


@pytest.mark.parametrize(
    "damage",
    [
        lambda stored: stored.pop("dim"),
        lambda stored: stored.update(dim=DIM - 1),
        lambda stored: stored.update(dim=0),
        lambda stored: stored.update(dim=-1),
        lambda stored: stored.update(dim=True),
        lambda stored: stored.update(dim="64"),
        lambda stored: stored.update(name=None),
        lambda stored: stored.update(probe_set="1"),
        lambda stored: stored.update(vectors="not base64!"),
        lambda stored: stored.update(vectors=None),
        lambda stored: stored.update(vectors=stored["vectors"][:-8]),
        lambda stored: stored.update(vectors="/38" + stored["vectors"][3:]),
        lambda stored: stored.update(query=""),
        lambda stored: stored.update(query=stored["vectors"]),
    ],
)
def test_damage_is_reported(stored, damage):
    written = stored.to_json()
    damage(written)
    with pytest.raises(CorruptionError, match="fingerprint in the store is damaged"):
        Fingerprint.from_json(written)


def test_the_probes_of_another_release_are_compared_by_name_and_size(stored):
    more = Fingerprint(stored.name, DIM, np.ones((9, DIM)), probe_set=2)
    written = Fingerprint.from_json(json.loads(json.dumps(more.to_json())))
    assert written.vectors.shape == (9, DIM)
    verdict = compare(written, stored)
    assert (verdict.same, verdict.kind) == (True, "incomparable")
    other = Fingerprint("another", DIM, stored.vectors)
    with pytest.raises(EmbeddingMismatch, match="probe set 2"):
        require_same(written, other)


def test_the_probes_are_what_stores_were_made_with():
    """Changing a probe makes every stored fingerprint wrong: count ``_PROBE_SET`` up instead."""
    assert len(PROBES) == len(set(PROBES)) == 8
    assert len(PROBES[7].split()) > 600
    digest = hashlib.sha256("\x00".join(PROBES).encode()).hexdigest()
    assert digest == "900ae8e426a70a2d63fa19c223ce154dd7ef018c3cd12448a25d55a0243f132f"


def test_fakes_of_langchain_core_have_fingerprints():
    one, two = (fingerprint(DeterministicFakeEmbedding(size=6)) for _ in range(2))
    assert compare(one, two).kind == "same"


@pytest.mark.parametrize("returned", [[], [[1.0]] * 7, [[float("nan")]] * 8])
def test_an_embedder_that_fails_the_probes_says_so(returned):
    class Broken(Trigrams):
        def embed_documents(self, texts):
            return returned

        def embed_query(self, text):
            raise AssertionError("the documents' vectors were enough to know")

    with pytest.raises(EmbeddingError, match="Broken"):
        fingerprint(Broken())


def test_an_embedder_of_the_same_name_that_differs_is_told_what_random_ones_need():
    random = FakeEmbeddings(size=8)
    with pytest.raises(EmbeddingMismatch, match=r"are random.*check_embedder=False"):
        require_same(fingerprint(random), fingerprint(random))
