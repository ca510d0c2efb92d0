"""Client of the HTTP API of agentsvc.

`Client` and `AsyncClient` have one attribute for each group of routes: `client.agents.list()`. The shapes of requests and
replies are in `agentsvc_client.types`.
"""

from ._calls import AsyncStream, Event, Options, Stream
from ._client import AsyncClient, Client
from ._errors import (
    ApiError,
    AuthenticationError,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    InternalServerError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    StreamError,
    TimedOutError,
    UnavailableError,
)
from .api import VERSION as __version__

__all__ = [
    "ApiError",
    "AsyncClient",
    "AsyncStream",
    "AuthenticationError",
    "Client",
    "ClientError",
    "ConflictError",
    "ConnectionFailedError",
    "Event",
    "InternalServerError",
    "InvalidRequestError",
    "NotFoundError",
    "Options",
    "PermissionDeniedError",
    "RateLimitError",
    "Stream",
    "StreamError",
    "TimedOutError",
    "UnavailableError",
    "__version__",
]
