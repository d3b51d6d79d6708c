"""The page that explains the interface, made of the OpenAPI document: plain HTML that asks nothing of another host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from murp.serving.limits import Limits


def page(document: dict[str, Any], limits: Limits) -> str:
    """The whole page."""
    about = document["info"]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{escape(about["title"])}</title><link rel="stylesheet" href="/docs/style.css"></head><body>',
        f"<h1>{escape(about['title'])}</h1><p>murp {escape(about['version'])}</p>",
        f"<p>{escape(about['description'])}</p>",
        "<p>If the server needs an API key, send it as <code>X-API-Key: KEY</code> or <code>Authorization: Bearer "
        f"KEY</code>. {_words(limits)} For programs: <a href='/openapi.json'>/openapi.json</a>.</p>",
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.extend(_operation(document, path, method.upper(), operation))
    return "\n".join([*parts, "</body></html>"])


def _words(limits: Limits) -> str:
    rate = f" A client may ask {limits.rate:g} questions per second." if limits.rate else ""
    return (
        f"A request may have at most {limits.questions:,} questions or triples and {limits.bytes:,} bytes, and may "
        f"take at most {limits.seconds:g} seconds.{rate}"
    )


def _operation(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><span class='method'>{method}</span><code>{escape(path)}</code></h2>"
    yield f"<p>{escape(operation['summary'])}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        yield f"<p>{escape(body.get('description', ''))}</p>"
        yield from _example("Example", body)
        item = next(iter(body["properties"].values())).get("items", {})
        if "properties" in item:
            yield _fields(item)
    answer = operation["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
    yield from _example("Answer", _resolved(document, answer))
    rows = "".join(
        f"<tr><td>{status}</td><td>{escape(told['description'])}</td></tr>"
        for status, told in sorted(operation["responses"].items())
        if status != "200"
    )
    yield f"<details><summary>Errors</summary><table>{rows}</table></details>"


def _example(title: str, schema: dict[str, Any]) -> Iterator[str]:
    for example in schema.get("examples", [])[:1]:
        yield f"<p>{title}</p><pre>{escape(json.dumps(example, indent=1))}</pre>"


def _fields(schema: dict[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(field.get('description', ''))}"
        f"{'; required' if name in needed else ''}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<table>{rows}</table>"


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found
