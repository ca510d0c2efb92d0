// What calls throw.

/** The base of all errors of this package. */
export class ClientError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The daemon could not be reached, or the connection broke. */
export class ConnectionFailedError extends ClientError {}

/** No reply came in time. */
export class TimedOutError extends ConnectionFailedError {}

/** A stream ended with the event `error`. */
export class StreamError extends ClientError {
  constructor(
    message: string,
    readonly code: string | undefined,
  ) {
    super(message);
  }
}

/** The daemon refused the request or could not answer it. */
export class ApiError extends ClientError {
  /** A stable word for programs, if there is one. */
  readonly code: string | undefined;
  /** The parameter or key at fault, if there is one. */
  readonly field: string | undefined;

  constructor(
    readonly status: number,
    /** The whole reply: some routes say more. */
    readonly body: Record<string, unknown>,
    /** The `x-request-id` of the reply, which the log of the daemon has too. */
    readonly requestId: string | undefined,
    /** Seconds after which the daemon wants the request again, if it says so. */
    readonly retryAfter: number | undefined,
  ) {
    super(typeof body.error === "string" ? body.error : `HTTP status ${status}`);
    this.code = typeof body.code === "string" ? body.code : undefined;
    this.field = typeof body.field === "string" ? body.field : undefined;
  }
}

/** 400, 405, 413, 415, 422: the request is not valid; `field` names what is not. */
export class InvalidRequestError extends ApiError {}

/** 401: the API key is missing or wrong. */
export class AuthenticationError extends ApiError {}

/** 403: the key may not do this. */
export class PermissionDeniedError extends ApiError {}

/** 404: it does not exist. */
export class NotFoundError extends ApiError {}

/** 409: the present state does not allow it. */
export class ConflictError extends ApiError {}

/** 429: too many requests, or a budget is used up. */
export class RateLimitError extends ApiError {}

/** 5xx: the model, a tool or the store failed; `code` says which. */
export class InternalServerError extends ApiError {}

/** 503: the daemon is loading, stopping or full. */
export class UnavailableError extends InternalServerError {}

const CLASSES: Record<number, typeof ApiError> = {
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError,
  503: UnavailableError,
};

export async function errorOf(response: Response): Promise<ApiError> {
  let body: Record<string, unknown> = {};
  try {
    const read: unknown = await response.json();
    if (typeof read === "object" && read !== null) body = read as Record<string, unknown>;
  } catch {
    // Not of the daemon, but of something before it.
  }
  const Class = CLASSES[response.status] ?? (response.status < 500 ? InvalidRequestError : InternalServerError);
  const retryAfter = secondsOf(response.headers.get("retry-after"));
  return new Class(response.status, body, response.headers.get("x-request-id") ?? undefined, retryAfter);
}

function secondsOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
