"""Requests, retries, streams and pages, for both clients."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote as _quote

import httpx2

from ._errors import ApiError, ConnectionFailedError, StreamError, TimedOutError, error_class

RETRIED = (429, 503)
# Requests that have the same result when they are sent twice.
IDEMPOTENT = ("GET", "PUT", "DELETE")
WAIT_FIRST, WAIT_MAX = 0.5, 60.0
PAGE_LIMIT = 100


@dataclass(frozen=True)
class Options:
    """How requests are sent."""

    timeout: float = 600.0
    """Seconds without a byte of a reply after which a request fails. A turn may take minutes."""
    retries: int = 2
    """How often a request is sent again after 429, 503 or a broken connection."""
    idempotency_key: str | None = None
    """Sent as `Idempotency-Key`, which `client.hooks` understands; such a request is also sent again."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with each request."""


class OptionChanges(TypedDict, total=False):
    """What `with_options` takes."""

    timeout: float
    retries: int
    idempotency_key: str | None
    headers: Mapping[str, str]


class Event(TypedDict):
    """A server-sent event."""

    name: str
    data: Any


E = TypeVar("E")


def quote(text: str) -> str:
    """`text` as one segment of a path."""
    return _quote(text, safe="")


def is_repeatable(method: str, options: Options) -> bool:
    return method in IDEMPOTENT or options.idempotency_key is not None


def prepare(
    options: Options,
    query: Mapping[str, object] | None,
    body: object,
    content: bytes | None,
    file: tuple[str, bytes, str] | None,
) -> dict[str, Any]:
    """What the HTTP client is given beside method and path."""
    given: dict[str, Any] = {"headers": dict(options.headers), "timeout": httpx2.Timeout(options.timeout, connect=10.0)}
    if options.idempotency_key is not None:
        given["headers"]["idempotency-key"] = options.idempotency_key
    if query:
        given["params"] = {key: _word(value) for key, value in query.items() if value is not None}
    if body is not None:
        given["json"] = body
    if content is not None:
        given["content"] = content
    if file is not None:
        given["files"] = {"file": file}
    return given


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def error_of(response: httpx2.Response) -> ApiError:
    """Of a response that was read."""
    try:
        body = response.json()
    except ValueError:
        body = {}
    return error_class(response.status_code)(
        response.status_code,
        body if isinstance(body, dict) else {},
        request_id=response.headers.get("x-request-id"),
        retry_after=_retry_after(response.headers.get("retry-after", "")),
    )


def _retry_after(value: str) -> float | None:
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def wait_before_retry(method: str, options: Options, attempt: int, error: Exception) -> float:
    """Seconds to wait; raises `error` if the request is not sent again. `attempt` counts from 0."""
    if attempt >= options.retries or not is_repeatable(method, options):
        raise error
    wait = min(WAIT_MAX, WAIT_FIRST * 2.0**attempt) * random.uniform(0.5, 1.0)
    if isinstance(error, ApiError):
        if error.status not in RETRIED or (error.retry_after or 0.0) > WAIT_MAX:
            raise error
        wait = wait if error.retry_after is None else error.retry_after
    elif isinstance(error, TimedOutError):
        raise error
    return wait


def broken(error: httpx2.TransportError) -> ConnectionFailedError:
    if isinstance(error, httpx2.TimeoutException):
        return TimedOutError("no reply came in time")
    return ConnectionFailedError(f"cannot talk to the daemon: {error}")


def event_of(event: httpx2.ServerSentEvent) -> Any:
    data = json.loads(event.data) if event.data else None
    if event.event == "error" and isinstance(data, dict):
        raise StreamError(str(data.get("error")), data.get("code"))
    return {"name": event.event, "data": data}


def text_of(event: Any) -> str:
    return event["data"]["content"] if event["name"] == "chunk" else ""


def page_query(query: Mapping[str, object]) -> dict[str, object]:
    return {"limit": PAGE_LIMIT, **query}


def page_items(page: Any, key: str) -> Any:
    return page[key] if key else page


class Stream(Generic[E]):
    """The events of a stream as they come. Leaving the loop, or the `with` block, closes it."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[E]:
        try:
            with self:
                for event in httpx2.EventSource(self._response):
                    yield event_of(event)
        except httpx2.TransportError as error:
            raise broken(error) from error

    def text(self) -> Iterator[str]:
        """The pieces of the response of an agent."""
        for event in self:
            if text := text_of(event):
                yield text

    def close(self) -> None:
        self._response.close()

    def __enter__(self) -> Stream[E]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncStream(Generic[E]):
    """As `Stream`."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[E]:
        try:
            async with self:
                async for event in httpx2.EventSource(self._response):
                    yield event_of(event)
        except httpx2.TransportError as error:
            raise broken(error) from error

    async def text(self) -> AsyncIterator[str]:
        """The pieces of the response of an agent."""
        async for event in self:
            if text := text_of(event):
                yield text

    async def close(self) -> None:
        await self._response.aclose()

    async def __aenter__(self) -> AsyncStream[E]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Calls:
    """What the methods of the groups call."""

    def __init__(self, http: httpx2.Client, options: Options) -> None:
        self.http = http
        self.options = options

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content: bytes | None = None,
        file: tuple[str, bytes, str] | None = None,
        is_streamed: bool = False,
    ) -> httpx2.Response:
        given = prepare(self.options, query, body, content, file)
        attempt = 0
        while True:
            error: Exception
            try:
                response = self.http.send(self.http.build_request(method, path, **given), stream=True)
                if response.is_success and is_streamed:
                    return response
                try:
                    response.read()
                finally:
                    response.close()
                if response.is_success:
                    return response
                error = error_of(response)
            except httpx2.TransportError as cause:
                error = broken(cause)
                error.__cause__ = cause
            time.sleep(wait_before_retry(method, self.options, attempt, error))
            attempt += 1

    def json(self, method: str, path: str, **given: Any) -> Any:
        response = self.send(method, path, **given)
        return response.json() if response.content else None

    def text(self, method: str, path: str, **given: Any) -> str:
        return self.send(method, path, **given).text

    def content(self, method: str, path: str, **given: Any) -> bytes:
        return self.send(method, path, **given).content

    def stream(self, method: str, path: str, **given: Any) -> Stream[Any]:
        return Stream(self.send(method, path, is_streamed=True, **given))

    def pages(self, path: str, key: str, query: Mapping[str, object]) -> Iterator[Any]:
        wanted = page_query(query)
        while True:
            response = self.send("GET", path, query=wanted)
            yield from page_items(response.json(), key)
            if not (cursor := response.headers.get("x-next-cursor")):
                return
            wanted["cursor"] = cursor


class AsyncCalls:
    """As `Calls`."""

    def __init__(self, http: httpx2.AsyncClient, options: Options) -> None:
        self.http = http
        self.options = options

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content: bytes | None = None,
        file: tuple[str, bytes, str] | None = None,
        is_streamed: bool = False,
    ) -> httpx2.Response:
        given = prepare(self.options, query, body, content, file)
        attempt = 0
        while True:
            error: Exception
            try:
                response = await self.http.send(self.http.build_request(method, path, **given), stream=True)
                if response.is_success and is_streamed:
                    return response
                try:
                    await response.aread()
                finally:
                    await response.aclose()
                if response.is_success:
                    return response
                error = error_of(response)
            except httpx2.TransportError as cause:
                error = broken(cause)
                error.__cause__ = cause
            await asyncio.sleep(wait_before_retry(method, self.options, attempt, error))
            attempt += 1

    async def json(self, method: str, path: str, **given: Any) -> Any:
        response = await self.send(method, path, **given)
        return response.json() if response.content else None

    async def text(self, method: str, path: str, **given: Any) -> str:
        return (await self.send(method, path, **given)).text

    async def content(self, method: str, path: str, **given: Any) -> bytes:
        return (await self.send(method, path, **given)).content

    async def stream(self, method: str, path: str, **given: Any) -> AsyncStream[Any]:
        return AsyncStream(await self.send(method, path, is_streamed=True, **given))

    async def pages(self, path: str, key: str, query: Mapping[str, object]) -> AsyncIterator[Any]:
        wanted = page_query(query)
        while True:
            response = await self.send("GET", path, query=wanted)
            for item in page_items(response.json(), key):
                yield item
            if not (cursor := response.headers.get("x-next-cursor")):
                return
            wanted["cursor"] = cursor
