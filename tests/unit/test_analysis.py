"""The analyzer, kind of text by kind of text."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import unicodedata

import pytest

from cormorant.analysis import LANGUAGES, Analyzer, analyzer_for, analyzer_from_spec
from cormorant.analysis.normalise import normalise
from cormorant.errors import ConfigError


@pytest.fixture(scope="module")
def english():
    return Analyzer()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("The cats were running", ["the", "cat", "were", "run"]),
        ("RUNNING Running running", ["run", "run", "run"]),
        ("it's the company's; don't", ["it", "the", "compani", "dont"]),
        ("O’Neil and O'Neil", ["oneil", "neil", "and", "oneil", "neil"]),
        ("well-known", ["wellknown", "well", "known"]),
        ("e-mail re-entry", ["email", "mail", "reentri", "entri"]),
        ("U.S.A. and USA", ["usa", "and", "usa"]),
        ("1,000 and 1000 but 3,4", ["1000", "and", "1000", "but", "3", "4"]),
        ("12:30", ["12:30"]),
        ("CUDA 12.1", ["cuda", "12.1", "12.1."]),
        ("CUDA12.1", ["cuda12.1", "cuda", "12.1", "12.1."]),
        ("v0.3.7", ["v0.3.7", "0.3.7", "0.3."]),
        ("ERR_1042", ["err_1042", "err1042", "err", "1042"]),
        ("#4421", ["#4421", "4421"]),
        ("jo.lee@acme.org", ["jo.lee@acme.org", "jo.lee", "jo", "lee", "acme.org", "acm", "org"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("get_user_name", ["get_user_name", "=getusername", "getusernam", "get", "user", "name"]),
        ("getUserName", ["=getusername", "getusernam", "get", "user", "name"]),
        ("HTTPServer", ["=httpserver", "httpserver", "http", "server"]),
        ("iPhone IDs", ["iphon", "id"]),
        ("C++ C# .NET", ["c++", "c", "c#", "c", ".net", "net"]),
        ("End of it.Next", ["end", "of", "it.next", "it", "next"]),
        ("wait ... what?!", ["wait", "what"]),
        ("____ --- ###", []),
        ("a\x00b\tc", ["a", "b", "c"]),
        ("x\ud800y", ["x", "y"]),
    ],
)
def test_english(english, text, terms):
    assert english.terms(text) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＣＵＤＡ　１２．１", "CUDA 12.1"),
        ("ﬁne ﬂow", "fine flow"),
        ("café résumés naïve", "cafe resumes naive"),
        ("cafe\u0301", "café"),
        ("soft\u00adhyphen", "softhyphen"),
        ("\u200eleft\u200f \ufeffmark", "left mark"),
        ("ŁÓDŹ Straße smørrebrød", "lodz strasse smorrebrod"),
        ("6½", "6 1 2"),
        ("10⁶ x²", "10 6 x 2"),
        ("٣٤ ३४", "34 34"),
        ("臺灣的憂鬱", "台湾的忧郁"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("مُحَمَّد", "محمد"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_the_same_to_a_reader(english, one, other):
    assert english.terms(one) == english.terms(other) != []


def test_chinese_terms_are_characters_and_pairs(english):
    assert english.terms("数据库，表") == ["数", "据", "库", "数据", "据库", "表"]


def test_scripts_meet_without_a_space(english):
    assert english.terms("用Python3写") == ["用", "python3", "python", "3", "写"]


def test_a_question_of_one_character_finds_what_contains_it(english):
    for query, text in [("我", "他和我说"), ("的", "我的"), ("あ", "ああ"), ("한", "한국")]:
        (term,) = english.query_terms(query)
        assert term in english.terms(text)


def test_korean_japanese_thai_are_found_by_part(english):
    for part, whole in [
        ("데이터", "데이터베이스를"),
        ("データ", "データベース"),
        ("ไทย", "ภาษาไทย"),
    ]:
        assert set(english.query_terms(part)) <= set(english.terms(whole))


def test_emoji_can_be_looked_for(english):
    assert english.terms("ship it 🚀🚀 👍🏽") == ["ship", "it", "🚀", "🚀", "👍"]
    assert english.query_terms("🚀") == ["🚀"]


def test_vowel_signs_do_not_cut_words(english):
    assert english.terms("हिन्दी भाषा।") == ["हिन्दी", "भाषा"]
    assert english.terms("தமிழ்") == ["தமிழ்"]


def test_stop_words_go_unless_nothing_else_remains(english):
    assert english.query_terms("what is the wing") == ["wing"]
    assert english.query_terms("To be, or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert english.query_terms("什么是机器学习？") == [
        *("机", "器", "学", "习"),
        *("是机", "机器", "器学", "学习"),
    ]
    assert english.query_terms("是什么") != []


def test_repeats_in_a_query_count(english):
    assert english.query_terms("new new york") == ["new", "new", "york"]


def test_the_exact_form_of_an_identifier_counts_twice(english):
    assert english.query_terms("ERR_1042").count("err_1042") == 2
    assert english.query_terms("well-known").count("wellknown") == 1


def test_long_tokens_are_cut_and_nothing_is_lost(english):
    assert english.terms("a" * 5000) == ["a" * 128]
    words = [f"word{i}" for i in range(300)]
    terms = english.terms(".".join(words))  # no name is that long: its words remain
    assert [term for term in terms if term.startswith("word") and term != "word"] == words
    assert len(english.terms("a.a." * 1000)) == 2000


def test_hashes_are_kept_whole(english):
    digest = "9f86d081884c7d659a2feaa0c55ad015"
    assert english.terms(digest) == [digest]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_analyses(language):
    analyzer = Analyzer(language)
    assert analyzer.terms("Internationalisation 12.1 数据 привет γεια")
    assert analyzer.query_terms("the und les los della")


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("german", "Häuser", "Haus"),
        ("german", "Müller", "Muller"),
        ("french", "l'homme", "hommes"),
        ("french", "étudiants", "etudiante"),
        ("spanish", "canciones", "canción"),
        ("russian", "книги", "книга"),
        ("russian", "ёлка", "елка"),
        ("swedish", "flickorna", "flicka"),
        ("turkish", "kitaplar", "kitap"),
        ("none", "RUNS", "runs"),
    ],
)
def test_stems_of_other_languages(language, one, other):
    analyzer = Analyzer(language)
    assert set(analyzer.terms(one)) & set(analyzer.terms(other))


def test_other_languages_drop_their_own_stop_words():
    assert Analyzer("german").query_terms("die Liebe und der Tod") == ["lieb", "tod"]
    assert Analyzer("german").query_terms("the end") == ["the", "end"]
    assert Analyzer("none").query_terms("the runs") == ["the", "runs"]


def test_a_language_by_its_code():
    assert Analyzer("de").language == Analyzer("German").language == "german"


@pytest.mark.parametrize("language", ["klingon", "", "zh", "ja", None, 7])
def test_an_unknown_language_is_refused(language):
    with pytest.raises(ConfigError) as refused:
        Analyzer(language)
    assert repr(language) in str(refused.value)
    if language in {"zh", "ja"}:
        assert "whatever the language" in str(refused.value)
    else:
        assert "german" in str(refused.value)


def test_a_stemmer_the_installed_release_lacks(monkeypatch):
    from cormorant.analysis import stems as module

    def older(language, size):
        raise KeyError(f"Stemming algorithm {language!r} not found")

    monkeypatch.setattr(module.Stemmer, "Stemmer", older)
    with pytest.raises(ConfigError, match=r"polish.*Upgrade PyStemmer"):
        Analyzer("polish")
    assert Analyzer("none").terms("fine") == ["fine"]


def test_a_spec_survives_json():
    for language in LANGUAGES:
        spec = json.loads(json.dumps(dict(analyzer_for(language).spec)))
        assert analyzer_from_spec(spec).spec == Analyzer(language).spec == spec


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version 2"),
        ({"name": "other"}, "'other'"),
        ({"stems": "0123"}, "PyStemmer release"),
        ({"language": "klingon"}, "klingon"),
        ({"more": 1}, "more"),
    ],
)
def test_a_spec_of_another_release_is_refused(change, says):
    with pytest.raises(ConfigError, match=says):
        analyzer_from_spec({**Analyzer().spec, **change})


@pytest.mark.parametrize("spec", [{}, {"name": "cormorant"}, None, "english"])
def test_what_is_no_spec_is_refused(spec):
    with pytest.raises(ConfigError, match="language"):
        analyzer_from_spec(spec)


def test_stems_are_those_of_the_pinned_release():
    """If this fails after an upgrade of PyStemmer, stores made before are refused: say so."""
    stems = "generic organis happili relat condit die sky news add internal"
    words = (
        "generically organisations happily relational conditional dying skies news added internal"
    )
    assert " ".join(Analyzer().terms(words)) == stems
    assert Analyzer("german").terms("Aufsätze Wörterbücher") == ["aufsatz", "worterbuch"]
    assert Analyzer().spec["stems"] == "15e3ad64e92cd346"
    assert Analyzer("german").spec["stems"] == "ea9d27acf9383e30"
    assert Analyzer("none").spec["stems"] == ""


def test_every_stemmer_has_a_digest_of_its_own():
    digests = [Analyzer(language).spec["stems"] for language in LANGUAGES]
    assert len(set(digests)) == len(digests)


def test_other_processes_give_the_same_terms(english):
    text = "Ünïcode 数据库 getUserName v0.3.7 and the rest"
    code = f"from cormorant.analysis import Analyzer; print(ascii(Analyzer().terms({text!r})))"
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == ascii(english.terms(text))


def test_threads_share_an_analyzer(monkeypatch):
    from cormorant.analysis import analyzer as module

    monkeypatch.setattr(module, "_CACHED_TOKENS", 50)  # so that it is emptied all the time
    analyzer = Analyzer()
    texts = [" ".join(f"word{i * j % 97}s runs" for j in range(40)) for i in range(60)]
    expected = [Analyzer().terms(text) for text in texts]
    wrong = []

    def work():
        for text, want in zip(texts, expected, strict=True):
            if analyzer.terms(text) != want:
                wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def starts_with_a_mark(character):
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0])


def test_no_run_of_marks_is_long_enough_to_be_sorted_for_long(english):
    marks = [c for c in map(chr, range(sys.maxunicode + 1)) if starts_with_a_mark(c)]
    assert len(marks) > 900
    for mark in marks:
        assert len(normalise("e" + mark * 500)) <= 1 + 3 * 30, hex(ord(mark))
    mixed = "".join(marks)
    assert len(normalise("e" + mixed * 20)) <= 1 + 3 * 30
    # Invisible characters between marks do not begin a new run.
    assert len(normalise("e" + "\u0301\u200d\u0327" * 500)) <= 1 + 3 * 30
    assert english.terms("e" + "\u0301\u0327" * 500_000 + " fish") == ["e", "fish"]


@pytest.mark.parametrize("run", ["\u0301", "\u0327\u0301", "\u0e38\u0e48", "\u0f71\u0f73"])
def test_thirty_marks_in_a_row_stay_as_they_are(run):
    kept = (run * 30)[:30]
    assert normalise("e" + kept) == unicodedata.normalize("NFKC", "e" + kept)
    assert normalise("e" + kept + run * 9 + "e" + kept) == normalise("e" + kept + "e" + kept)


def test_long_runs_of_other_signs_stay_as_they_are():
    for sign in ("─", "。", "¨", " ", "\u3000", "🐟", "-", "\u0903"):
        text = f"é{sign * 99}ß"
        assert normalise(text) == unicodedata.normalize("NFKC", text)
