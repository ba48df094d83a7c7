"""What does an e-mail say?"""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_binary_file, policy
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Final

from cormorant.errors import LoadError

if TYPE_CHECKING:
    from cormorant.ingest.files import SourceFile

__all__ = ["read"]

_LARGEST: Final = 64 * 2**20


def read(file: SourceFile) -> Iterator[tuple[str, dict[str, Any]]]:
    """Its plain text, else what its HTML says; attachments are not opened.

    Raises:
        LoadError: If it is too large.
    """
    if file.size_bytes > _LARGEST:
        raise LoadError(f"{file.source} has {file.size_bytes:,} bytes.", path=file.path)
    with file.path.open("rb") as raw:
        message = message_from_binary_file(raw, policy=policy.default)
    if not isinstance(message, EmailMessage):  # pragma: no cover - the policy makes one
        raise LoadError(f"{file.source} is no e-mail.", path=file.path)
    body = message.get_body(preferencelist=("plain", "html"))
    text = "" if body is None else str(body.get_content())
    if body is not None and body.get_content_subtype() == "html":
        text = _without_markup(text)
    told = {"title": message["subject"], "sender": message["from"], "sent": message["date"]}
    yield text, {name: None if value is None else str(value) for name, value in told.items()}


def _without_markup(page: str) -> str:
    try:
        from bs4 import BeautifulSoup
    except ImportError:
        return page
    soup = BeautifulSoup(page, "html.parser")
    for each in soup(["script", "style"]):
        each.decompose()
    return soup.get_text("\n", strip=True)
