"""Is our reciprocal rank fusion that of ranx? On random runs, document by document.

ranx brings numba and much else, so it is installed into a temporary virtual environment, once,
for this check alone. Prints how many runs agree; exits 1 if any does not, 2 if ranx could not
be installed. With ``--write``, what ranx gave for smaller runs is kept too, so that
``tests/reference/test_rrf_table.py`` can compare without it.

    python scripts/check_rrf_against_ranx.py [--queries 200] [--ranx 0.3.21]
        [--write tests/reference/rrf_by_ranx.json]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from langchain_core.documents import Document

from cormorant.langchain.provenance import Answer, of
from cormorant.langchain.retrievers.fusing.by_rank import fused

THEIRS = """
import json, sys
from ranx import Run, fuse
given = json.load(open(sys.argv[1]))
runs = [Run(run) for run in given["runs"]]
fused = fuse(runs=runs, norm=None, method="rrf", params={"k": given["k"]})
scores = {q: dict(found) for q, found in fused.run.items()}
from importlib.metadata import version
json.dump({"scores": scores, "ranx": version("ranx")}, open(sys.argv[2], "w"), default=float)
"""


def random_runs(
    queries: int, lists: int, seed: int, documents: int = 80, most: int = 50
) -> list[dict[str, dict[str, float]]]:
    """Ranked lists with scores that fall with the rank, since ranx ranks by score."""
    chance = random.Random(seed)
    ids = [f"d{number}" for number in range(documents)]
    return [
        {
            f"q{query}": {
                id: float(100 - rank)
                for rank, id in enumerate(chance.sample(ids, chance.randint(1, most)))
            }
            for query in range(queries)
        }
        for _ in range(lists)
    ]


def ours(runs: list[dict[str, dict[str, float]]], query: str, k: int) -> dict[str, float]:
    lists = [Answer([Document(id=id, page_content=id) for id in run[query]]) for run in runs]
    names = [str(number) for number in range(len(lists))]
    found = fused(lists, [1.0] * len(lists), names, rrf_k=k)
    return {str(document.id): of(document).score or 0.0 for document in found}


def theirs(python: Path, folder: Path, runs: list, k: int) -> dict[str, dict]:
    given, answer = folder / "runs.json", folder / "fused.json"
    given.write_text(json.dumps({"runs": runs, "k": k}))
    subprocess.run([python, "-c", THEIRS, given, answer], check=True)
    return json.loads(answer.read_text())


def table(python: Path, folder: Path) -> dict[str, object]:
    """Small runs, and what ranx makes of them; ids in order of rank stand for a run."""
    cases, release = [], ""
    for seed, (lists, k) in enumerate([(2, 60), (3, 60), (4, 60), (2, 0), (3, 10)], start=100):
        runs = random_runs(4, lists, seed, documents=12, most=9)
        answer = theirs(python, folder, runs, k)
        release = answer["ranx"]
        for query, scores in answer["scores"].items():
            best = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
            cases.append({"k": k, "lists": [list(run[query]) for run in runs], "scores": best})
    return {"made by": f"ranx {release}, fuse(method='rrf', norm=None)", "cases": cases}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--ranx", default="", help="the release to compare with")
    parser.add_argument("--write", type=Path, help="keep a table of smaller runs here")
    asked = parser.parse_args()
    agreed = total = 0
    with tempfile.TemporaryDirectory(prefix="ranx-") as where:
        folder = Path(where)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        wanted = f"ranx=={asked.ranx}" if asked.ranx else "ranx"
        command = [python, "-m", "pip", "install", "--quiet", wanted, "setuptools"]
        if subprocess.run(command, check=False).returncode:
            print(f"pip could not install {wanted}", file=sys.stderr)
            return 2
        for seed, (lists, k) in enumerate([(2, 60), (3, 60), (5, 60), (2, 1), (3, 10)]):
            runs = random_runs(asked.queries, lists, seed)
            expected = theirs(python, folder, runs, k)["scores"]
            for query, scores in expected.items():
                total += 1
                found = ours(runs, query, k)
                agreed += found.keys() == scores.keys() and all(
                    math.isclose(found[id], score, rel_tol=1e-9) for id, score in scores.items()
                )
        if asked.write:
            asked.write.write_text(json.dumps(table(python, folder), indent=1) + "\n")
    print(f"{agreed} of {total} fused runs agree with ranx")
    return 0 if agreed == total else 1


if __name__ == "__main__":
    sys.exit(main())
