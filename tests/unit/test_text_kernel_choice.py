"""Who does the arithmetic is the caller's choice, and numba is loaded by nobody else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cormorant.errors import MissingDependency, UsageError
from cormorant.index.text import KERNELS, TextIndex, compiled, kernel, use_kernel


def test_numpy_unless_told():
    assert kernel() == "numpy"
    use_kernel("numpy")
    assert kernel() == "numpy"


def test_other_names_are_refused_with_those_there_are():
    with pytest.raises(UsageError, match=r"'cython'.*numpy and numba"):
        use_kernel("cython")
    assert set(KERNELS) == {"numpy", "numba"}


def test_without_numba_the_extra_is_named_and_numpy_stays(monkeypatch):
    compiled.load.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingDependency, match=r"cormorant\[fast\]"):
        use_kernel("numba")
    assert kernel() == "numpy"
    text_index = TextIndex.empty().append(TextIndex.encode([["a"], ["b"]]))
    assert text_index.ask(["b"]).search(k=1).slots.tolist() == [1]


def test_nothing_loads_numba_by_itself():
    code = (
        "import sys, cormorant, cormorant.cli\n"
        "from cormorant import Query\n"
        "with cormorant.open(':memory:') as store:\n"
        "    store.add([{'id': 'a', 'text': 'one fish'}])\n"
        "    assert store.search(Query(text='fish')).hits\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
        "assert 'cormorant.index.text.compiled' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
