"""Small helpers that write HTML elements; plain text becomes markup only by way of :func:`text`."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from typing import NewType

Markup = NewType("Markup", str)

_VOID = frozenset({"img", "meta", "br"})


def text(plain: str) -> Markup:
    """Escape plain text, for use between tags and in quoted attributes alike."""
    return Markup(html.escape(plain, quote=True))


def join(parts: Iterable[Markup], between: str = "") -> Markup:
    """Join pieces of markup."""
    return Markup(between.join(parts))


def element(name: str, /, *children: Markup, **attributes: str) -> Markup:
    """Write one element; attribute values are plain text, ``class_`` means ``class``, ``_`` means ``-``."""
    named = [(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items()]
    opening = "".join(f' {key}="{text(value)}"' for key, value in named)
    if name in _VOID:
        return Markup(f"<{name}{opening}>")
    return Markup(f"<{name}{opening}>{join(children)}</{name}>")


def data_uri(content: bytes, media_type: str) -> str:
    """Return content as a URI that needs no file beside the page."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
