"""Write cormorant/analysis/t2s.py, the Traditional → Simplified character table.

Source: TSCharacters.txt of OpenCC (Apache License 2.0), as packaged on PyPI by
``opencc-python-reimplemented``. Of several Simplified forms the first is taken, as OpenCC does.

    pip install opencc-python-reimplemented==0.1.7
    python scripts/make_t2s.py
    python scripts/make_t2s.py --source path/to/TSCharacters.txt
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "cormorant" / "analysis" / "t2s.py"
PER_LINE = 44  # a Han character is two columns wide

HEAD = '''"""Which Simplified character does a Traditional one fold to? By scripts/make_t2s.py.

The pairs are OpenCC's TSCharacters (Apache License 2.0, see NOTICE): the character at one
position of ``TRADITIONAL`` folds to the one at the same position of ``SIMPLIFIED``.
"""

'''


def find_source() -> Path:
    spec = importlib.util.find_spec("opencc")
    if spec is None or spec.origin is None:
        sys.exit("OpenCC's table is not installed: pip install opencc-python-reimplemented==0.1.7")
    return Path(spec.origin).parent / "dictionary" / "TSCharacters.txt"


def read_pairs(source: Path) -> list[tuple[str, str]]:
    pairs = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        traditional, _, simplified = line.partition("\t")
        first = simplified.split()[0] if simplified.split() else ""
        if len(traditional) == len(first) == 1 and traditional != first:
            pairs[traditional] = first
    # A chain (a → b, b → c) would make folding twice differ from folding once.
    return sorted((a, b) for a, b in ((a, follow(a, pairs)) for a in pairs) if a != b)


def follow(character: str, pairs: dict[str, str]) -> str:
    seen = {character}
    while (following := pairs.get(character, character)) not in seen:
        seen.add(following)
        character = following
    return character


def literal(name: str, characters: str) -> str:
    lines = [characters[i : i + PER_LINE] for i in range(0, len(characters), PER_LINE)]
    return f"{name} = (\n" + "".join(f'    "{line}"\n' for line in lines) + ")\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=None)
    source = parser.parse_args().source or find_source()
    pairs = read_pairs(source)
    text = HEAD + literal("TRADITIONAL", "".join(a for a, _ in pairs))
    text += literal("SIMPLIFIED", "".join(b for _, b in pairs))
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(pairs)} pairs written to {TARGET}")


if __name__ == "__main__":
    main()
