"""How does a model say what to search for, and among what?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from langchain_core.language_models import LanguageModelLike
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import Runnable
from langchain_core.structured_query import Comparator, Operator, StructuredQuery
from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from cormorant.errors import ConfigError, RewriteError, UsageError
from cormorant.langchain.retrievers.asking.chain import chain_of
from cormorant.langchain.retrievers.asking.rewriting import (
    quoted,
    read_json,
    unthought,
)
from cormorant.langchain.retrievers.self_query.expression import parse_expression
from cormorant.ranges import is_whole

__all__ = ["AttributeInfo", "StructuredQueryOutputParser", "attributes", "query_constructor"]

_PROMPT: Final = PromptTemplate.from_template(
    """Turn the user's question into a search among documents: {contents}.

Their attributes are:
{schema}

Answer with one JSON object and nothing else:
{{"query": <what the text of the documents should be about, without what the filter says>,
 "filter": <a filter expression, or "NO_FILTER">{limit}}}

A filter expression is a comparison, comparator("attribute", value), or an operation on
expressions, operator(expression, expression, ...).
Comparators: {comparators}
Operators: {operators}
Values are strings in double quotes, numbers, true, false, dates as 2024-01-05, and lists in square
brackets. Use only the attributes above, and only values of their types. Filter by nothing that the
question does not ask for. Today is {today}.

{examples}User's question: {query}
JSON:"""
)
_LIMIT: Final = ',\n "limit": <how many documents the user asks for, only if a number is named>'


class AttributeInfo(BaseModel):
    """What a model is told of a metadata field.

    Args:
        name: The field's.
        description: What it holds, perhaps with its values.
        type: ``string``, ``integer``, ``float``, ``boolean``, ``date`` or what else says it.
    """

    name: str
    description: str
    type: str

    model_config = ConfigDict(frozen=True)


def attributes(given: Sequence[Any]) -> tuple[AttributeInfo, ...]:
    """What was given as AttributeInfos: ours, langchain-classic's, or dicts.

    Raises:
        UsageError: If one has no name, description or type.
    """
    if not isinstance(given, (list, tuple)):
        raise UsageError(
            "metadata_field_info takes a list of AttributeInfos, or of dicts with name, "
            f"description and type; got {given!r}."
        )
    read = []
    for each in given:
        values = each if isinstance(each, Mapping) else getattr(each, "__dict__", {})
        missing = [name for name in AttributeInfo.model_fields if name not in values]
        if missing:
            raise UsageError(
                "metadata_field_info takes AttributeInfos, or dicts with name, description and "
                f"type; got {each!r}, without {', '.join(missing)}."
            )
        read.append(AttributeInfo(**{name: values[name] for name in AttributeInfo.model_fields}))
    return tuple(read)


class StructuredQueryOutputParser(BaseOutputParser[StructuredQuery]):
    """A model's JSON as a StructuredQuery.

    Args:
        comparators: Those allowed.
        operators: Those allowed.

    Raises:
        RewriteError: If it is not that, saying what is wrong.
    """

    comparators: tuple[Comparator, ...] = tuple(Comparator)
    operators: tuple[Operator, ...] = tuple(Operator)

    @override
    def parse(self, text: str) -> StructuredQuery:
        said = _said(unthought(text))
        query, filter, limit = said.get("query"), said.get("filter"), said.get("limit")
        if query is not None and not isinstance(query, str):
            raise RewriteError(f"the query must be text; it is {query!r:.200}")
        directive = None
        if isinstance(filter, str) and filter.strip().upper() not in {"", "NO_FILTER", "NONE"}:
            directive = parse_expression(
                filter, comparators=self.comparators, operators=self.operators
            )
        elif filter and not isinstance(filter, str):
            raise RewriteError(
                f"the filter must be an expression in a string; it is {filter!r:.200}"
            )
        return StructuredQuery(query=query or "", filter=directive, limit=_count(limit))


def _count(limit: Any) -> int | None:
    """How many documents were asked for; None if no number of documents was said."""
    if isinstance(limit, str):
        written = limit.strip()
        limit = int(written) if re.fullmatch(r"[0-9]{1,18}", written) else None
    counts = is_whole(limit, 1)
    return limit if counts else None


def _said(text: str) -> dict[str, Any]:
    """The object in a reply, with or without talk around it.

    A reply that was cut off is refused: half a filter would let through what the whole would not.
    """
    said = read_json(text[text.find("{") : text.rfind("}") + 1])
    if said is None:
        raise RewriteError(f"the model must answer in JSON; it said {quoted(text)}")
    if not isinstance(said, dict) or not {"query", "filter"} & set(said):
        raise RewriteError(f"the model must give a query and a filter; it said {quoted(text)}")
    return said


def query_constructor(
    llm: LanguageModelLike,
    document_contents: str,
    metadata_field_info: Sequence[Any],
    *,
    allowed_comparators: Sequence[Comparator] = tuple(Comparator),
    allowed_operators: Sequence[Operator] = tuple(Operator),
    enable_limit: bool = False,
    examples: Sequence[tuple[str, Mapping[str, Any]]] = (),
    prompt: BasePromptTemplate[Any] | None = None,
    call: str = "query_constructor(llm, document_contents, metadata_field_info)",
) -> Runnable[Any, StructuredQuery]:
    """A chain from ``{"query"}`` to a StructuredQuery.

    Args:
        llm: The model.
        document_contents: What the documents are, in a few words.
        metadata_field_info: Of the fields it may filter by.
        allowed_comparators: Those of the translator, by default all.
        allowed_operators: Likewise.
        enable_limit: Let it say how many documents are wanted.
        examples: Questions, and the JSON object each should become.
        prompt: Over ``query``, and any of ``contents``, ``schema``, ``limit``, ``comparators``,
            ``operators``, ``today`` and ``examples``.
        call: What an error says was called.

    Raises:
        ConfigError: If there is no model, or the prompt has other variables.
    """
    prompt = _PROMPT if prompt is None else prompt
    if not isinstance(prompt, BasePromptTemplate):
        raise ConfigError(f"{call} takes a prompt template as prompt; got {prompt!r:.80}.")
    described = {
        each.name: {"description": each.description, "type": each.type}
        for each in attributes(metadata_field_info)
    }
    shown = "".join(
        f"User's question: {question}\nJSON: {json.dumps(answer, ensure_ascii=False)}\n\n"
        for question, answer in examples
    )
    known: dict[str, Any] = {
        "contents": document_contents,
        "schema": json.dumps(described, ensure_ascii=False, indent=1),
        "limit": _LIMIT if enable_limit else "",
        "comparators": ", ".join(each.value for each in allowed_comparators),
        "operators": ", ".join(each.value for each in allowed_operators),
        "examples": shown,
        "today": _today,
    }
    told = {name: value for name, value in known.items() if name in prompt.input_variables}
    parser = StructuredQueryOutputParser(
        comparators=tuple(allowed_comparators), operators=tuple(allowed_operators)
    )
    chain: Runnable[Any, StructuredQuery] = chain_of(
        prompt.partial(**told), llm, parser, call=call, gives=("query",)
    )
    return chain.with_config(run_name="query_constructor")


def _today() -> str:
    """Asked anew in each call; no lambda, so that the chain can be pickled."""
    return datetime.now(UTC).date().isoformat()
