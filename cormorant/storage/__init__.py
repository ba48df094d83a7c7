"""Which bytes are durable? Files, transactions, snapshots, locks, format number."""

from __future__ import annotations

from cormorant.storage.arrays import map_arrays, verify_arrays, write_arrays
from cormorant.storage.codec import MAX_DEPTH, decode_metadata, encode_metadata
from cormorant.storage.draft import Draft
from cormorant.storage.generation import NewGeneration
from cormorant.storage.ground import MEMORY
from cormorant.storage.reader import Reader
from cormorant.storage.sql import FORMAT
from cormorant.storage.storage import Storage
from cormorant.storage.types import (
    Arrays,
    Delta,
    Head,
    NewDocument,
    NewRecord,
    Problem,
    Reclaimed,
    SlotMap,
    StaleGeneration,
    StoredDocument,
    StoredRecord,
)
from cormorant.storage.writer import Writer

__all__ = [
    "FORMAT",
    "MAX_DEPTH",
    "MEMORY",
    "Arrays",
    "Delta",
    "Draft",
    "Head",
    "NewDocument",
    "NewGeneration",
    "NewRecord",
    "Problem",
    "Reader",
    "Reclaimed",
    "SlotMap",
    "StaleGeneration",
    "Storage",
    "StoredDocument",
    "StoredRecord",
    "Writer",
    "decode_metadata",
    "encode_metadata",
    "map_arrays",
    "verify_arrays",
    "write_arrays",
]
