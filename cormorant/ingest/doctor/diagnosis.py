"""What did an examination find?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from cormorant.width import clip, plain

__all__ = ["NEARLY", "READY", "Diagnosis", "Finding", "Said", "Severity", "State", "said"]

State: TypeAlias = Literal["passed", "failed", "unknown"]
Severity: TypeAlias = Literal["error", "warning", "advice"]

READY: Final = 10  # of the twelve of the checklist
NEARLY: Final = 7
_EXAMPLES: Final = 5
_ROOM: Final = 80  # columns of an example


@dataclass(frozen=True, slots=True)
class Said:
    """What one check says.

    Attributes:
        state: ``unknown`` where the store does not show it and the pipeline was not described.
        evidence: Why, in numbers.
        examples: Ids of records, or values; at most five, made harmless for a terminal.
    """

    state: State
    evidence: str
    examples: tuple[str, ...] = ()


def said(state: State, evidence: str, examples: tuple[str, ...] | list[str] = ()) -> Said:
    """What a check says; stored text in it cannot move a terminal's cursor."""
    return Said(
        state,
        plain(evidence),
        tuple(clip(plain(each), _ROOM) for each in examples[:_EXAMPLES]),
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """One check and what it said.

    Attributes:
        name, question, severity, checklist: Of the check.
        state, evidence, examples: What it said.
        remedy: What to do; empty unless it failed or is unknown.
    """

    name: str
    question: str
    severity: Severity
    checklist: bool
    state: State
    evidence: str
    examples: tuple[str, ...]
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, under the attributes' names."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "examples": list(self.examples)}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the checks' order.

    Attributes:
        findings: One for each check.
        records: How many there are in the store, or in the scope.
        examined: How many were looked at.
    """

    findings: tuple[Finding, ...]
    records: int
    examined: int

    @property
    def of(self) -> int:
        """How many checks are on the production checklist."""
        return sum(each.checklist for each in self.findings)

    @property
    def passed(self) -> int:
        """How many of them passed; what is unknown did not."""
        return sum(each.checklist and each.state == "passed" for each in self.findings)

    @property
    def verdict(self) -> Literal["ready", "nearly", "not ready"]:
        """Ready from 10 of 12, nearly from 7."""
        if self.passed >= READY:
            return "ready"
        return "nearly" if self.passed >= NEARLY else "not ready"

    @property
    def ok(self) -> bool:
        """Whether it is ready, and nothing that loses or leaks data was found."""
        errors = any(e.state == "failed" and e.severity == "error" for e in self.findings)
        return self.verdict == "ready" and not errors

    @property
    def sampled(self) -> str | None:
        """What was not looked at, a sentence; None if everything was."""
        if self.examined >= self.records:
            return None
        return (
            f"The oldest {self.examined:,} of {self.records:,} records were looked at; shares and "
            "counts are of those."
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "passed": self.passed,
            "of": self.of,
            "records": self.records,
            "examined": self.examined,
            "findings": [each.to_json() for each in self.findings],
        }
