"""Make cormorant/data/xquad from two judged sets: python scripts/make_demo_data.py EN_DIR ZH_DIR.

Each folder holds docs.jsonl (id, text), queries.jsonl (id, text) and qrels.tsv. The output is
compressed without a time stamp, so that the same input gives the same bytes.
"""

import gzip
import json
import sys
from pathlib import Path

TARGET = Path(__file__).parent.parent / "cormorant" / "data" / "xquad"


def write(name, body):
    packed = gzip.compress(body.encode(), compresslevel=9, mtime=0)
    (TARGET / name).write_bytes(packed)
    print(f"{name}: {body.count(chr(10))} lines, {len(packed)} bytes")


def slimmed(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    slim = [{"id": row["id"], "text": row["text"]} for row in rows]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in slim)


def main(english, chinese):
    TARGET.mkdir(parents=True, exist_ok=True)
    for language, folder in (("en", english), ("zh", chinese)):
        write(f"docs-{language}.jsonl.gz", slimmed(folder / "docs.jsonl"))
        write(f"queries-{language}.jsonl.gz", slimmed(folder / "queries.jsonl"))
    judged = (english / "qrels.tsv").read_text(encoding="utf-8")
    if judged != (chinese / "qrels.tsv").read_text(encoding="utf-8"):
        raise SystemExit("The two languages are judged differently; one qrels file cannot serve.")
    write("qrels.tsv.gz", judged)


main(Path(sys.argv[1]), Path(sys.argv[2]))
