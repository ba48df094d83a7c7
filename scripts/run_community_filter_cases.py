"""Do langchain-community's 35 filter cases pass on our columns?

Downloads the source archive from the package index with pip, takes the case file out of
it, and runs every case through the column mask and through the scalar oracle. Prints
each case that differs and a summary; exits 1 if any does.

    python scripts/run_community_filter_cases.py [--archive langchain_community-0.4.2.tar.gz]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from types import ModuleType

from cormorant.filters import parse
from cormorant.index.metadata import Columns

VERSION = "0.4.2"
CASES = "tests/integration_tests/vectorstores/fixtures/filtering_test_cases.py"


def download(folder: Path) -> Path:
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, f"langchain-community=={VERSION}"],
        check=True,
    )
    return next(folder.glob("langchain_community-*.tar.gz"))


def load(archive: Path) -> ModuleType:
    with tarfile.open(archive) as tar:
        member = next(name for name in tar.getnames() if name.endswith(CASES))
        file = tar.extractfile(member)
        if file is None:
            raise SystemExit(f"{member} in {archive} is no file.")
        source = file.read()
    module = ModuleType("filtering_test_cases")
    exec(compile(source, member, "exec"), module.__dict__)
    return module


def run(cases: ModuleType) -> tuple[int, int]:
    documents = cases.DOCUMENTS
    columns = Columns.empty().append(Columns.encode([doc.metadata for doc in documents]))
    passed = total = 0
    for name in sorted(n for n in vars(cases) if n.endswith("_FILTERING_TEST_CASES")):
        for source, expected in vars(cases)[name]:
            total += 1
            flt = parse(source)
            by_mask = [
                doc.metadata["id"]
                for doc, hit in zip(documents, columns.mask(flt), strict=True)
                if hit
            ]
            by_oracle = [doc.metadata["id"] for doc in documents if flt.matches(doc.metadata)]
            if by_mask == by_oracle == sorted(expected):
                passed += 1
            else:
                print(f"{name}: {source}: expected {expected}, mask {by_mask}, oracle {by_oracle}")
    return passed, total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archive", type=Path, help="use this source archive, download nothing")
    archive = parser.parse_args().archive
    with tempfile.TemporaryDirectory() as folder:
        passed, total = run(load(archive or download(Path(folder))))
    print(f"{passed} of {total} cases of langchain-community {VERSION} pass")
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
