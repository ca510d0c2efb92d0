"""The clients."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Unpack

import httpx2

from ._calls import AsyncCalls, Calls, OptionChanges, Options
from .api import VERSION, AsyncGroups, Groups

BASE_URL = "http://127.0.0.1:4545"


def _settings(api_key: str | None, base_url: str | None) -> dict[str, Any]:
    headers = {"user-agent": f"agentsvc-client-python/{VERSION}"}
    if key := api_key or os.environ.get("AGENTSVC_API_KEY"):
        headers["authorization"] = f"Bearer {key}"
    url = base_url or os.environ.get("AGENTSVC_URL") or BASE_URL
    return {"base_url": url.rstrip("/"), "headers": headers}


class Client(Groups):
    """A client of one daemon. Use it with `with`, or call `close`."""

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = Options.timeout,
        retries: int = Options.retries,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`api_key` and `base_url` are by default those of the environment variables `AGENTSVC_API_KEY` and `AGENTSVC_URL`;
        without the latter the daemon of this machine. See `Options` for the others."""
        options = Options(timeout=timeout, retries=retries, headers=headers or {})
        super().__init__(Calls(httpx2.Client(**_settings(api_key, base_url)), options))

    def with_options(self, **changed: Unpack[OptionChanges]) -> Client:
        """This client with other `Options`, on the same connections: `client.with_options(timeout=5).agents.list()`."""
        other = object.__new__(Client)
        calls = self._calls
        Groups.__init__(other, Calls(calls.http, dataclasses.replace(calls.options, **changed)))
        return other

    def close(self) -> None:
        self._calls.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient(AsyncGroups):
    """As `Client`, for asyncio."""

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        timeout: float = Options.timeout,
        retries: int = Options.retries,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        options = Options(timeout=timeout, retries=retries, headers=headers or {})
        super().__init__(AsyncCalls(httpx2.AsyncClient(**_settings(api_key, base_url)), options))

    def with_options(self, **changed: Unpack[OptionChanges]) -> AsyncClient:
        """As `Client.with_options`."""
        other = object.__new__(AsyncClient)
        calls = self._calls
        AsyncGroups.__init__(other, AsyncCalls(calls.http, dataclasses.replace(calls.options, **changed)))
        return other

    async def close(self) -> None:
        await self._calls.http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
