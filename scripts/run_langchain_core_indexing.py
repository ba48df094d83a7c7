"""Run langchain-core's own tests of `index()` against Cormorant, and print how many pass.

The tests are fetched as part of langchain-core's source archive from the package index, put
into a temporary folder, and collected by a module that takes all of them and puts a Cormorant
in the place of the two vector-store fixtures. Nothing of them is kept.

    python scripts/run_langchain_core_indexing.py [VERSION] [--on-disk]

Exit code: 0 if every test ran and passed, 1 if one did not, 2 if they could not be run.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

TESTS = "tests/unit_tests/indexing/test_indexing.py"
NEEDED = {"pytest": "pytest", "pytest_asyncio": "pytest-asyncio"}

MODULE = '''\
"""langchain-core's tests, all of them, with a Cormorant for a vector store."""

import pytest
import theirs
from langchain_core.embeddings import DeterministicFakeEmbedding
from theirs import *  # noqa: F403

from cormorant.langchain import Cormorant

ON_DISK = {on_disk!r}


class Listed(Cormorant):
    """The tests list what InMemoryVectorStore keeps in its dict `store`."""

    @property
    def store(self):
        return {{record.id: record for record in self._door.records()}}


# Three tests assert that the fixture is of the class they were written for.
theirs.InMemoryVectorStore = Listed


@pytest.fixture
def vector_store(tmp_path):
    path = tmp_path / "vector_store" if ON_DISK else None
    with Listed(DeterministicFakeEmbedding(size=5), path=path) as made:
        yield made


@pytest.fixture
def upserting_vector_store(tmp_path):
    path = tmp_path / "upserting" if ON_DISK else None
    with Listed(DeterministicFakeEmbedding(size=5), path=path) as made:
        yield made
'''

CONFTEST = """\
import pytest

pytest.register_assert_rewrite("theirs")
asked = set()


def pytest_collection_modifyitems(items):
    for item in items:
        if {"vector_store", "upserting_vector_store"} & set(item.fixturenames):
            asked.add(item.nodeid)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{len(asked)} of them use the vector store")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("version", nargs="?", default=version("langchain-core"))
    parser.add_argument("--on-disk", action="store_true", help="a store in a folder, not in memory")
    asked = parser.parse_args()
    missing = [pip for module, pip in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(f"needed and not installed: pip install {' '.join(missing)}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="langchain-core-tests-") as folder:
        where = Path(folder)
        if not (fetch(asked.version, where / "theirs.py") and fetch_mock(where)):
            return 2
        (where / "test_indexing_cormorant.py").write_text(MODULE.format(on_disk=asked.on_disk))
        (where / "conftest.py").write_text(CONFTEST)
        return run(where, f"langchain-core {asked.version}")


def fetch(wanted: str, target: Path) -> bool:
    """Put their test module at `target`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", "langchain-core", "--dest", folder, f"langchain-core=={wanted}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        archives = list(Path(folder).glob("langchain_core-*.tar.gz"))
        if done.returncode or not archives:
            print(f"pip could not fetch langchain-core {wanted}:\n{done.stderr}", file=sys.stderr)
            return False
        with tarfile.open(archives[0]) as archive:
            names = [name for name in archive.getnames() if name.endswith(TESTS)]
            member = archive.extractfile(names[0]) if names else None
            if member is None:
                print(f"{archives[0].name} holds no {TESTS}", file=sys.stderr)
                return False
            target.write_bytes(member.read())
    return True


def fetch_mock(where: Path) -> bool:
    """Put pytest-mock, which only their tests need, beside them."""
    if importlib.util.find_spec("pytest_mock") is not None:
        return True
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--target", str(where), "pytest-mock"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"pip could not fetch pytest-mock:\n{done.stderr}", file=sys.stderr)
    return done.returncode == 0


def run(where: Path, what: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [
        "-o",
        "asyncio_mode=auto",
        "-W",
        "ignore::UserWarning",
        "test_indexing_cormorant.py",
    ]
    paths = os.pathsep.join(filter(None, [str(where), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command,
        check=False,
        cwd=where,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    print(done.stdout[-6000:])
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    passed = counts.get("passed", 0)
    others = sum(
        counts.get(word, 0) for word in ("failed", "error", "errors", "skipped", "xfailed")
    )
    if done.returncode == 0 and passed and not others:
        print(f"{what}: all {passed} tests of {Path(TESTS).name} pass")
        return 0
    print(f"{what}: {passed} of {passed + others} tests of {Path(TESTS).name} pass")
    if not passed and not others:
        print(done.stderr[-3000:], file=sys.stderr)
        return 2
    return 1


if __name__ == "__main__":
    sys.exit(main())
