"""What does a real question look like when it is answered? The bilingual demonstration."""

from __future__ import annotations

from cormorant.demo.corpus import fill, record_id
from cormorant.demo.judging import TASKS, Task, judge, sample
from cormorant.demo.questions import QUESTIONS, Question, wanted

__all__ = [
    "QUESTIONS",
    "TASKS",
    "Question",
    "Task",
    "fill",
    "judge",
    "record_id",
    "sample",
    "wanted",
]
