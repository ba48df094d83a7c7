"""How good is a LangChain retriever or chain, and what does a model say of it?"""

from __future__ import annotations

from cormorant.langchain.evaluation.faithfulness import (
    Case,
    Faithfulness,
    FaithfulnessJudge,
    Statement,
    statements,
)
from cormorant.langchain.evaluation.grading import RelevanceJudge
from cormorant.langchain.evaluation.questions import (
    MadeQuestions,
    agenerate_questions,
    generate_questions,
)
from cormorant.langchain.evaluation.system import LangChainSystem, Price, as_system

__all__ = [
    "Case",
    "Faithfulness",
    "FaithfulnessJudge",
    "LangChainSystem",
    "MadeQuestions",
    "Price",
    "RelevanceJudge",
    "Statement",
    "agenerate_questions",
    "as_system",
    "generate_questions",
    "statements",
]
