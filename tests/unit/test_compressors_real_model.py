"""Does a real cross-encoder, loaded from disk, put documents in the order its weights say?

Needs the extra `cormorant[rerank]`; skipped without. The model is a tiny one with random
weights, made here: nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import itertools
import pickle
import sys
import threading
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from compressorlab import found, ids

from cormorant.langchain.provenance import of
from cormorant.langchain.retrievers import BM25Retriever, ContextualCompressionRetriever
from cormorant.langchain.retrievers.document_compressors import (
    CrossEncoderReranker,
    HuggingFaceCrossEncoder,
    RerankError,
)

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("sentence_transformers") is None,
        reason="needs pip install 'cormorant[rerank]' (sentence-transformers)",
    ),
    pytest.mark.filterwarnings("default"),  # those of torch and transformers are not ours
]

WORDS = ("a", "cormorant", "dives", "for", "fish", "heron", "waits", "boat", "is", "red", "what")
TEXTS = ("a cormorant dives", "a heron waits for fish", "a boat is red", "fish", "red fish a boat")
QUERY = "what dives for fish"


def build(folder, *, labels=1):
    """A BERT of one layer, saved as sentence-transformers saves."""
    import torch
    from sentence_transformers import CrossEncoder
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    parts = folder.with_suffix(".parts")
    special = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    vocabulary = {word: number for number, word in enumerate([*special.values(), *WORDS])}
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.2,
        num_labels=labels,
    )
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(parts)
    PreTrainedTokenizerFast(
        tokenizer_object=BertWordPieceTokenizer(vocabulary)._tokenizer,
        **{f"{kind}_token": token for kind, token in special.items()},
    ).save_pretrained(parts)
    CrossEncoder(str(parts), activation_fn=torch.nn.Identity()).save_pretrained(str(folder))
    return folder


def by_hand(folder, texts):
    """The logits, through the layers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    batch = tokenizer([QUERY] * len(texts), list(texts), padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(**batch).logits[:, 0].tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield build(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")


async def test_it_reorders_as_its_weights_say(folder):
    logits = by_hand(folder, TEXTS)
    expected = sorted(range(len(TEXTS)), key=lambda i: -logits[i])
    assert expected != list(range(len(TEXTS))), "the order must change for the test to tell"
    assert min(b - a for a, b in itertools.pairwise(sorted(logits))) > 1e-4, "no ties"
    reranker = CrossEncoderReranker(model_name=str(folder), top_n=None)
    asked = {"query": QUERY, "documents": found(*TEXTS)}
    for out in (reranker.invoke(asked), await reranker.ainvoke(asked)):
        assert ids(out) == [f"d{i}" for i in expected]
        scores = [of(document).rerank_score for document in out]
        assert scores == pytest.approx([logits[i] for i in expected], abs=1e-5)


def test_turned_weights_turn_the_order(folder, tmp_path):
    import torch
    from sentence_transformers import CrossEncoder

    turned = tmp_path / "turned"
    encoder = CrossEncoder(str(folder))
    classifier = dict(encoder.named_parameters())
    with torch.no_grad():
        for name in [name for name in classifier if "classifier" in name]:
            classifier[name].neg_()
    encoder.save_pretrained(str(turned))
    asked = {"query": QUERY, "documents": found(*TEXTS)}
    one = CrossEncoderReranker(model_name=str(folder), top_n=None).invoke(asked)
    other = CrossEncoderReranker(model_name=str(turned), top_n=None).invoke(asked)
    assert ids(other) == ids(one)[::-1]


def test_its_logits_are_told_as_relevance(folder):
    model = HuggingFaceCrossEncoder(str(folder), model_kwargs={"device": "cpu"})
    assert model.scale == "logit"
    out = CrossEncoderReranker(model=model).invoke({"query": QUERY, "documents": found(*TEXTS)})
    assert all(0 < of(document).relevance < 1 for document in out)


def test_it_is_loaded_once_and_only_when_it_scores(folder):
    model = HuggingFaceCrossEncoder(str(folder))
    assert model._loaded is None
    threads = [threading.Thread(target=model.score, args=([("a", "a")],)) for _ in range(4)]
    seen = set()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        seen.add(id(model._loaded))
    assert len(seen) == 1
    assert model.score([]) == []


def test_a_pickle_loads_the_weights_again(folder):
    model = HuggingFaceCrossEncoder(str(folder))
    pairs = [(QUERY, text) for text in TEXTS]
    scores = model.score(pairs)
    data = pickle.dumps(CrossEncoderReranker(model=model))
    assert len(data) < 5000, "the weights stay out of it"
    assert pickle.loads(data).model.score(pairs) == pytest.approx(scores)


def test_a_model_of_several_classes_is_refused(tmp_path):
    folder = build(tmp_path / "classes", labels=3)
    with pytest.raises(RerankError, match="gives 3 numbers per pair"):
        HuggingFaceCrossEncoder(str(folder)).score([("a", "b")])


def test_behind_a_retriever(folder):
    retriever = ContextualCompressionRetriever(
        base_retriever=BM25Retriever.from_texts(list(TEXTS), k=5),
        base_compressor=CrossEncoderReranker(model_name=str(folder), top_n=2),
    )
    assert len(retriever.retrieve("fish").hits) == 2
