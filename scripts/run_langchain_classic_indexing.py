"""Run langchain-classic's own tests of `index()` with Cormorant's record manager.

The tests are fetched as part of langchain-classic's source archive from the package index, put
into a temporary folder, and collected by a module that puts a `CormorantRecordManager` in the
place of the two `SQLRecordManager` fixtures; `index` and `aindex` are langchain-core's, which
langchain-classic hands on. Nothing of them is kept. The archive's `indexes` folder holds two more
tests, which list the names langchain-classic exports and know no record manager: they are left out.

    python scripts/run_langchain_classic_indexing.py [VERSION] [--on-disk]

Exit code: 0 if every test ran and passed, 1 if one did not, 2 if they could not be run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "1.0.8"
TESTS = "tests/unit_tests/indexes/test_indexing.py"
IMPORTS = {
    "from langchain_classic.indexes._sql_record_manager import SQLRecordManager": (
        "from cormorant.langchain.indexing import CormorantRecordManager as SQLRecordManager"
    ),
    "from langchain_classic.indexes import": "from langchain_core.indexing import",
}
MODULE = '''\
"""langchain-classic's tests of index(), all of them, with a Cormorant for a record manager."""

import pytest
from theirs import *  # noqa: F403

import cormorant
from cormorant.langchain.indexing import CormorantRecordManager

ON_DISK = {on_disk!r}


@pytest.fixture
def kept(tmp_path):
    with cormorant.open(tmp_path / "kb" if ON_DISK else ":memory:") as store:
        yield store


@pytest.fixture
def record_manager(kept):
    return CormorantRecordManager(kept, "kittens")


@pytest.fixture
def arecord_manager(kept):
    return CormorantRecordManager(kept, "kittens")
'''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("version", nargs="?", default=VERSION, help="of langchain-classic")
    parser.add_argument("--on-disk", action="store_true", help="a store in a folder, not in memory")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="langchain-classic-indexing-") as folder:
        where = Path(folder)
        theirs = fetched(asked.version, where)
        if theirs is None:
            return 2
        for old, new in IMPORTS.items():
            theirs = theirs.replace(old, new)
        (where / "theirs.py").write_text(theirs)
        rewriting = 'import pytest\n\npytest.register_assert_rewrite("theirs")\n'
        (where / "conftest.py").write_text(rewriting)
        (where / "test_classic.py").write_text(MODULE.format(on_disk=asked.on_disk))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-o", "asyncio_mode=auto", "-W", "ignore::UserWarning", "test_classic.py"]
        done = subprocess.run(command, check=False, cwd=where, capture_output=True, text=True)
        print(done.stdout[-6000:])
        print(done.stderr[-2000:], file=sys.stderr)
        return min(done.returncode, 2)


def fetched(version: str, folder: Path) -> str | None:
    """Their test module."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "langchain-classic", "--dest", str(folder)]
    done = subprocess.run([*command, f"langchain-classic=={version}"], check=False)
    archives = list(folder.glob("langchain_classic-*.tar.gz"))
    if done.returncode or not archives:
        print(f"pip could not fetch the archive of langchain-classic {version}", file=sys.stderr)
        return None
    with tarfile.open(archives[0]) as archive:
        names = [name for name in archive.getnames() if name.endswith(TESTS)]
        member = archive.extractfile(names[0]) if names else None
        if member is None:
            print(f"{archives[0].name} holds no {TESTS}", file=sys.stderr)
            return None
        return member.read().decode()


if __name__ == "__main__":
    sys.exit(main())
