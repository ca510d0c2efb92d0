"""The Python client against a daemon, and against a server that refuses requests: <daemon> <key> <server>."""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from agentsvc_client import (
    ApiError,
    AsyncClient,
    AuthenticationError,
    Client,
    ClientError,
    ConflictError,
    ConnectionFailedError,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    StreamError,
    TimedOutError,
    UnavailableError,
)
from agentsvc_client.types import Answer

URL, KEY, REFUSING = sys.argv[1:]
MODEL = '[model]\nprovider = "builtin"\nmodel = "builtin"\n'


E = TypeVar("E", bound=ClientError)


def raised(kind: type[E], call: Callable[[], object]) -> E:
    try:
        call()
    except kind as error:
        assert type(error) is kind, error
        return error
    raise AssertionError(f"no {kind.__name__}")


def daemon(client: Client) -> None:
    agents = [client.agents.create(manifest_toml=f'name = "py{n}"\n{MODEL}')["agent_id"] for n in range(5)]
    reply: Answer = client.agents.send_message(agents[0], message="hello", thinking=False)
    assert "offline model" in reply["response"] and reply["input_tokens"] > 0, reply

    with client.agents.stream_message(agents[0], message="hello") as stream:
        events = list(stream)
    assert [event["name"] for event in events[-2:]] == ["chunk", "done"], events
    assert "".join(event["data"]["content"] for event in events if event["name"] == "chunk") == reply["response"]
    assert "".join(client.agents.stream_message(agents[0], message="hello").text()) == reply["response"]
    for event in client.world.stream():
        assert event["name"] == "world", event
        break

    names = [agent["name"] for agent in client.agents.list_all(limit=2)]
    assert names == [agent["name"] for agent in client.agents.list()] and "py4" in names and len(names) > 4, names
    for label in ("a", "b", "ü/%?"):
        client.agents.create_session(agents[0], label=label)
    labels = [session["label"] for session in client.sessions.list_all(agent_id=agents[0], limit=1)]
    assert {"a", "b", "ü/%?"} < set(labels), labels
    assert client.agents.get_session_by_label(agents[0], "ü/%?")["label"] == "ü/%?"
    session = reply["session_id"]
    texts = [message["content"] for message in client.sessions.list_all_messages(session, limit=1)]
    assert len(texts) == 6, texts

    upload = client.agents.upload_file(agents[0], "ü.txt", b"\x00text", "text/plain")
    assert client.system.get_upload(upload["file_id"]) == b"\x00text" and upload["filename"] == "ü.txt", upload
    client.agents.write_file(agents[0], "SOUL.md", b"kind")
    assert client.agents.get_file(agents[0], "SOUL.md") == b"kind"
    assert "agentsvc_" in client.system.get_metrics()
    assert client.keys.delete(client.keys.create(name="k", role="admin")["id"]) is None  # type: ignore[func-returns-value]

    wrong = raised(InvalidRequestError, lambda: client.agents.create(manifest_toml="name = 3"))
    assert (wrong.status, wrong.field, wrong.body["line"]) == (400, "manifest_toml", 1), wrong.body
    assert wrong.request_id and "expected a string" in wrong.message
    raised(ConflictError, lambda: client.agents.create(manifest_toml='name = "py0"'))
    gone = raised(NotFoundError, lambda: client.agents.get("00000000-0000-0000-0000-000000000000"))
    assert isinstance(gone, ApiError) and gone.status == 404, gone
    with Client("wrong", base_url=URL) as other:
        raised(AuthenticationError, lambda: other.agents.list())


async def asynchronous() -> None:
    async with AsyncClient(KEY, base_url=URL) as client:
        agent = (await client.agents.create(manifest_toml=f'name = "async"\n{MODEL}'))["agent_id"]
        ask = (client.agents.send_message(agent, message=f"echo {n}") for n in range(3))
        assert [reply["response"] for reply in await asyncio.gather(*ask)] == ["0", "1", "2"]
        stream = await client.agents.stream_message(agent, message="echo one two")
        assert "".join([piece async for piece in stream.text()]) == "one two"
        assert "async" in [item["name"] async for item in client.agents.list_all(limit=2)]
        try:
            await client.agents.create(manifest_toml="")
        except InvalidRequestError as error:
            assert error.field == "manifest_toml", error


def refusing(client: Client) -> None:
    start = time.monotonic()
    assert client.agents.list() == []
    assert time.monotonic() - start >= 1, "it waits as long as it is told"
    raised(UnavailableError, lambda: client.agents.create(manifest_toml=""))
    client.with_options(idempotency_key="build-1").hooks.wake(text="hello")
    raised(UnavailableError, client.system.get_version)
    limited = raised(RateLimitError, client.system.get_status)
    assert (limited.retry_after, limited.code, limited.message) == (3600, "too_many", "slow down"), limited.body
    raised(TimedOutError, client.with_options(timeout=0.2).system.get_ready)
    seen = []
    try:
        for event in client.logs.stream_logs():
            seen.append(event)
    except ConnectionFailedError:
        assert seen == [{"name": "log", "data": {"n": 1}}], seen
    else:
        raise AssertionError("a stream that breaks off is an error")
    broken = raised(StreamError, lambda: list(client.world.stream()))
    assert (broken.message, broken.code) == ("it broke", "broken"), broken
    raised(ConnectionFailedError, Client(base_url="http://127.0.0.1:9", retries=0).system.get_health)


with Client(KEY, base_url=URL) as client:
    daemon(client)
asyncio.run(asynchronous())
with Client(base_url=REFUSING) as client:
    refusing(client)
print("passed")
