"""Run langchain-classic's own tests of retrievers, caches and storage against Cormorant's.

The tests are taken out of langchain-classic's source archive from the package index, put into
a temporary folder, and re-pointed: `langchain_classic.retrievers` becomes
`cormorant.langchain.retrievers`, and likewise `.embeddings` and `.storage`. The rest of
langchain-classic is installed beside it, in a virtual environment of its own over this one, for
the tests' own imports. Nothing of them is kept.

    python scripts/run_langchain_classic.py [NAME …] [--version 1.0.8] [--keep FOLDER]

Without names, all of them run. `--keep` names a folder for the environment and the archive, so
that the next run need not fetch them again. Exit code: 0 if every test passed, 1 if one did
not, 2 if they could not be run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

VERSION = "1.0.8"
FILES = {
    "ensemble": "retrievers/test_ensemble.py",
    "multi_query": "retrievers/test_multi_query.py",
    "multi_vector": "retrievers/test_multi_vector.py",
    "parent_document": "retrievers/test_parent_document.py",
    "time_weighted": "retrievers/test_time_weighted_retriever.py",
    "self_query": "retrievers/self_query/test_base.py",
    "chain_extract": "retrievers/document_compressors/test_chain_extract.py",
    "chain_filter": "retrievers/document_compressors/test_chain_filter.py",
    "listwise_rerank": "retrievers/document_compressors/test_listwise_rerank.py",
    "caching": "embeddings/test_caching.py",
    "filesystem": "storage/test_filesystem.py",
    "lc_store": "storage/test_lc_store.py",
}
ROOM = "cormorant.langchain"
MOVED = re.compile(r"\blangchain_classic\.(retrievers|storage|embeddings)\b")
NEEDED = [
    "langchain-text-splitters",
    "langchain-openai",
    "aiosqlite",
    "freezegun",
    "greenlet",
    "lark",
    "pytest-mock",
    "pytest-socket",
    "syrupy",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FILES)}")
    parser.add_argument("--version", default=VERSION, help="of langchain-classic")
    parser.add_argument("--keep", type=Path, help="folder to keep what was fetched in")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in FILES]
    if unknown:
        parser.error(f"no tests are named {', '.join(unknown)}; there are {', '.join(FILES)}")
    with working_folder(asked.keep) as folder:
        python = environment(folder, asked.version)
        archive = fetched(folder, asked.version)
        if python is None or archive is None:
            return 2
        with tempfile.TemporaryDirectory(prefix="langchain-classic-tests-") as tests:
            return run(python, unpacked(archive, Path(tests)), asked.names or list(FILES))


@contextlib.contextmanager
def working_folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="langchain-classic-") as folder:
        yield Path(folder)


def environment(folder: Path, version: str) -> Path | None:
    """The python of an environment over this one, with langchain-classic in it."""
    home = folder / "venv"
    python = home / "bin" / "python"
    done = folder / f"installed-{version}"
    if done.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    site = next(home.glob("lib/python*/site-packages"))
    # What is installed here, editable installs among it, is seen there and not fetched again.
    here = sysconfig.get_path("purelib")
    (site / "beneath.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    command = [python, "-m", "pip", "install", "--quiet", f"langchain-classic=={version}", *NEEDED]
    if subprocess.run(command, check=False).returncode:
        print(f"pip could not install langchain-classic {version}", file=sys.stderr)
        return None
    done.touch()
    return python


def fetched(folder: Path, version: str) -> Path | None:
    """langchain-classic's source archive."""
    archive = folder / f"langchain_classic-{version}.tar.gz"
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder), f"langchain-classic=={version}"]
        if subprocess.run(command, check=False).returncode or not archive.exists():
            print(
                f"pip could not fetch the archive of langchain-classic {version}", file=sys.stderr
            )
            return None
    return archive


def unpacked(archive: Path, folder: Path) -> Path:
    """The tests, re-pointed."""
    with tarfile.open(archive) as tar:
        top = tar.getnames()[0].split("/", 1)[0]
        tests = [member for member in tar.getmembers() if member.name.startswith(f"{top}/tests/")]
        tar.extractall(folder, members=tests, filter="data")
    root = folder / top
    for file in FILES.values():
        path = root / "tests" / "unit_tests" / file
        path.write_text(MOVED.sub(rf"{ROOM}.\1", path.read_text()))
    return root


def run(python: Path, root: Path, names: list[str]) -> int:
    failed = 0
    for name in names:
        report = root / f"{name}.xml"
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["-o", "asyncio_mode=auto", f"--junit-xml={report}"]
        command += [f"tests/unit_tests/{FILES[name]}"]
        # Without this the current environment's plugins would be looked for first.
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            command, check=False, cwd=root, env=env, capture_output=True, text=True
        )
        passed, total = counted(report)
        print(f"{name}: {passed} of {total} pass")
        if done.returncode or not total or passed != total:
            failed += 1
            print(done.stdout[-4000:])
            print(done.stderr[-1000:], file=sys.stderr)
    print(f"{len(names) - failed} of {len(names)} test files of langchain-classic pass")
    return 1 if failed else 0


def counted(report: Path) -> tuple[int, int]:
    """How many passed, of how many."""
    if not report.exists():
        return 0, 0
    cases = list(ET.parse(report).getroot().iter("testcase"))
    bad = {"failure", "error", "skipped"}
    return sum(1 for case in cases if not bad & {part.tag for part in case}), len(cases)


if __name__ == "__main__":
    sys.exit(main())
