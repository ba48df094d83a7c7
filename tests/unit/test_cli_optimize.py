"""What does ``cormorant optimize`` say, and what has it done?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

import cormorant
from cormorant import data
from cormorant.cli.app import main
from cormorant.errors import ScopeError
from cormorant.evaluate.store_system import store_settings
from cormorant.langchain import Cormorant
from cormorant.langchain.embeddings import LocalEmbeddings


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    vectors = np.random.default_rng(0).standard_normal((40, 16))
    with cormorant.open(tmp_path / "kb") as store:
        store.add(
            {"id": id, "text": text, "vector": vectors[i]}
            for i, (id, text) in enumerate(list(data.documents("en").items())[:40])
        )
    return tmp_path / "kb"


def test_what_was_learned_is_kept_and_told(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(kb)]) == 0
    told = capsys.readouterr().out
    assert "folded   2 changes" in told
    assert "vectors are scanned as they are" in told
    assert "learned from 40 records" in told
    with cormorant.open(kb) as store:
        assert store.trust is not None
        assert store_settings(store)["trust"]["records"] == 40
        assert "fingerprint" not in store_settings(store)["trust"]


def test_as_json_and_nothing_to_do_the_second_time(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(kb), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["trust"]["records"] == 40
    assert first["index"] is None
    assert main(["optimize", str(kb), "--json", "--recall", "0.9"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["trust"] == first["trust"]


def test_a_recall_out_of_range_is_a_wrong_call(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", str(kb), "--recall", "2"]) == 2
    assert "recall" in capsys.readouterr().err
    assert main(["optimize", str(kb.parent / "none")]) == 2


def test_the_stores_own_embedder_is_asked_whether_it_understands(tmp_path: Path) -> None:
    model, kb = LocalEmbeddings(), tmp_path / "kb"
    texts = dict(list(data.documents("en").items())[:120])
    with Cormorant(model, path=kb) as vs:
        vs.add_texts(list(texts.values()), ids=list(texts))
        vs.store.set_embedder("local", vs.store.fingerprint)
        assert vs.store.learn_trust().heard is None
    assert main(["optimize", str(kb)]) == 0
    with cormorant.open(kb) as store:
        assert store.trust is not None
        assert store.trust.heard == 1.0
        before = store.trust
    assert main(["optimize", str(kb), "--embedder", "none"]) == 0
    with cormorant.open(kb) as store:
        assert store.trust == before


def test_a_vector_store_optimizes_with_its_embedder() -> None:
    asked: list[str] = []

    class Listening(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return super().embed_query(text)

    texts = list(data.documents("en").values())[:120]
    with Cormorant.from_texts(texts, Listening(size=16)) as vs:
        asked.clear()
        vs.optimize()
        assert 0 < len(asked) <= 96
        asked.clear()
        vs.optimize()
        assert not asked  # nothing came since
        with pytest.raises(ScopeError, match="whole store"):
            vs.scope(tenant="acme").optimize()
