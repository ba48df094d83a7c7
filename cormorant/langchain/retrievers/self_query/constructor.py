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
from langchain_core.utils.json import parse_json_markdown
from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from cormorant.errors import UsageError
from cormorant.langchain.retrievers.rewriting import RewriteError, unthought
from cormorant.langchain.retrievers.self_query.expression import parse_expression

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
        said = _json(unthought(text))
        query, filter, limit = said.get("query"), said.get("filter"), said.get("limit")
        if query is not None and not isinstance(query, str):
            raise RewriteError(f"the query must be text; it is {query!r}")
        directive = None
        if isinstance(filter, str) and filter.strip().upper() not in {"", "NO_FILTER", "NONE"}:
            directive = parse_expression(
                filter, comparators=self.comparators, operators=self.operators
            )
        elif filter and not isinstance(filter, str):
            raise RewriteError(f"the filter must be an expression in a string; it is {filter!r}")
        if isinstance(limit, str) and limit.strip().isdigit():
            limit = int(limit)
        counts = isinstance(limit, int) and not isinstance(limit, bool) and limit > 0
        return StructuredQuery(query=query or "", filter=directive, limit=limit if counts else None)


def _json(text: str) -> dict[str, Any]:
    inside = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        said = parse_json_markdown(text if inside is None else inside[0])
    except ValueError as error:  # JSONDecodeError is one
        raise RewriteError(f"the model must answer in JSON; it said {text!r}") from error
    if not isinstance(said, dict) or not {"query", "filter"} & set(said):
        raise RewriteError(f"the model must give a query and a filter; it said {text!r}")
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
    """
    prompt = _PROMPT if prompt is None else prompt
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
        "today": lambda: datetime.now(UTC).date().isoformat(),
    }
    told = {name: value for name, value in known.items() if name in prompt.input_variables}
    parser = StructuredQueryOutputParser(
        comparators=tuple(allowed_comparators), operators=tuple(allowed_operators)
    )
    chain: Runnable[Any, StructuredQuery] = prompt.partial(**told) | llm | parser
    return chain.with_config(run_name="query_constructor")
