"""Who says what is relevant, when nobody has judged yet?

Records that are asked for by what they say, people in front of a terminal, and models, which
are believed once they were measured against people. See ``docs/judging.md``.
"""

from __future__ import annotations

from cormorant.evaluate.judgements.agreement import (
    Agreement,
    agreement,
    cohen_kappa,
    qrels_agreement,
)
from cormorant.evaluate.judgements.asking import KINDS
from cormorant.evaluate.judgements.believing import Believed, ModelJudgements, NotBelieved
from cormorant.evaluate.judgements.kept import StoreJudgements, kept_human, kept_origins
from cormorant.evaluate.judgements.known_items import KnownItems, known_items
from cormorant.evaluate.judgements.ledger import JudgementFile, Origin
from cormorant.evaluate.judgements.pool import pool
from cormorant.evaluate.judgements.session import Item, JudgingSession
from cormorant.evaluate.judgements.twins import twins_of

__all__ = [
    "KINDS",
    "Agreement",
    "Believed",
    "Item",
    "JudgementFile",
    "JudgingSession",
    "KnownItems",
    "ModelJudgements",
    "NotBelieved",
    "Origin",
    "StoreJudgements",
    "agreement",
    "cohen_kappa",
    "kept_human",
    "kept_origins",
    "known_items",
    "pool",
    "qrels_agreement",
    "twins_of",
]
