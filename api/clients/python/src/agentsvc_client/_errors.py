"""What calls raise."""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    """The base of all errors of this package."""


class ConnectionFailedError(ClientError):
    """The daemon could not be reached, or the connection broke."""


class TimedOutError(ConnectionFailedError):
    """No reply came in time."""


class StreamError(ClientError):
    """A stream ended with the event `error`."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ApiError(ClientError):
    """The daemon refused the request or could not answer it."""

    def __init__(
        self, status: int, body: dict[str, Any], *, request_id: str | None = None, retry_after: float | None = None
    ) -> None:
        self.status = status
        self.message = str(body.get("error") or f"HTTP status {status}")
        """One sentence for people."""
        self.code: str | None = body.get("code")
        """A stable word for programs, if there is one."""
        self.field: str | None = body.get("field")
        """The parameter or key at fault, if there is one."""
        self.body = body
        """The whole reply: some routes say more."""
        self.request_id = request_id
        """The `x-request-id` of the reply, which the log of the daemon has too."""
        self.retry_after = retry_after
        """Seconds after which the daemon wants the request again, if it says so."""
        super().__init__(f"{self.message} (status {status}{f', code {self.code}' if self.code else ''})")


class InvalidRequestError(ApiError):
    """400, 405, 413, 415, 422: the request is not valid; `field` names what is not."""


class AuthenticationError(ApiError):
    """401: the API key is missing or wrong."""


class PermissionDeniedError(ApiError):
    """403: the key may not do this."""


class NotFoundError(ApiError):
    """404: it does not exist."""


class ConflictError(ApiError):
    """409: the present state does not allow it."""


class RateLimitError(ApiError):
    """429: too many requests, or a budget is used up."""


class InternalServerError(ApiError):
    """5xx: the model, a tool or the store failed; `code` says which."""


class UnavailableError(InternalServerError):
    """503: the daemon is loading, stopping or full."""


def error_class(status: int) -> type[ApiError]:
    known: dict[int, type[ApiError]] = {
        401: AuthenticationError,
        403: PermissionDeniedError,
        404: NotFoundError,
        409: ConflictError,
        429: RateLimitError,
        503: UnavailableError,
    }
    return known.get(status, InvalidRequestError if 400 <= status < 500 else InternalServerError)
