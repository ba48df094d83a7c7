"""The price table: what is shipped, what users write, and what is refused."""

from __future__ import annotations

import pytest

from cormorant.errors import ConfigError
from cormorant.ingest import PriceTable

MILLION_DOCUMENTS = 1_000_000 * 500

OWN = """
as_of = "today"

[[price]]
provider = "acme"
model = "embed-9"
dimensions = 64
usd_per_million_tokens = 1

[[price]]
provider = "openai"
model = "text-embedding-3-small"
dimensions = 1536
usd_per_million_tokens = 0.5
"""


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("openai:text-embedding-3-small", 10),
        ("openai:text-embedding-3-large", 65),
        ("cohere:embed-english-v3.0", 50),
        ("voyageai:voyage-3-lite", 10),
        ("local", 0),
    ],
)
def test_a_million_documents_cost_what_the_list_says(model, usd):
    price = PriceTable.load().find(model)
    assert price.build_usd(MILLION_DOCUMENTS) == pytest.approx(usd)
    assert price.as_of == "spring 2026"


def test_a_model_is_found_by_its_own_name_or_its_specification():
    table = PriceTable.load()
    small = table.find("text-embedding-3-small")
    assert small == table.find("azure_openai:text-embedding-3-small")
    assert small == table.find(None, "", "Text-Embedding-3-Small")
    assert table.find("openai") is None  # two models
    assert table.find("openai:text-embedding-9") is None
    assert table.find("acme:text-embedding-3-small") is None
    assert table.find() is None


def test_vectors_take_four_bytes_a_number():
    small = PriceTable.load().find("text-embedding-3-small")
    assert small.vector_bytes(1_000_000) == 1_000_000 * 1536 * 4


def test_a_question_costs_what_its_tokens_cost():
    small = PriceTable.load().find("text-embedding-3-small")
    assert small.query_usd(20) == pytest.approx(20 * 0.02 / 1e6)


def test_prices_of_ones_own_come_first(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(OWN, encoding="utf-8")
    table = PriceTable.load(path)
    assert table.find("acme:embed-9").build_usd(2_000_000) == 2
    assert table.find("text-embedding-3-small").usd_per_million_tokens == 0.5
    assert table.find("text-embedding-3-small").as_of == "today"
    assert table.find("cohere:embed-english-v3.0").as_of == "spring 2026"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("as_of = ", "not TOML"),
        ("", "as_of"),
        ('as_of = "x"\nprice = 3', "rows"),
        ('as_of = "x"\nprice = [3]', "price 1"),
        (OWN.replace('model = "embed-9"', ""), "price 1"),
        (OWN.replace('"embed-9"', '" "'), "model"),
        (OWN.replace("dimensions = 64", "dimensions = 0"), "dimensions"),
        (OWN.replace("tokens = 1\n", "tokens = -1\n"), "usd_per_million_tokens"),
        (OWN.replace("tokens = 1\n", "tokens = nan\n"), "usd_per_million_tokens"),
        (OWN.replace("tokens = 1\n", 'tokens = "1"\n'), "usd_per_million_tokens"),
    ],
)
def test_a_table_of_another_form_is_refused(tmp_path, written, says):
    path = tmp_path / "prices.toml"
    path.write_text(written, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        PriceTable.load(path)


def test_a_table_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        PriceTable.load(tmp_path / "none.toml")
