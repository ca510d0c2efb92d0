"""The official `openai` package against a daemon: `openai_sdk.py <base url> <key> <case>`. A case fails by raising."""

import asyncio
import json
import sys

import openai

BASE, KEY, CASE = sys.argv[1:4]
SETTINGS = dict(base_url=BASE, api_key=KEY, max_retries=0, timeout=180)
MODEL = "agentsvc:ada"
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks somewhere.",
        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]},
    },
}
# One white pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def user(content):
    return {"role": "user", "content": content}


def sync():
    client = openai.OpenAI(**SETTINGS)
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "system", "content": "Be brief."}, user("hello")], temperature=0.2, max_tokens=50
    )
    assert answer.choices[0].message.content == "echo: hello", answer
    assert answer.choices[0].finish_reason == "stop" and answer.object == "chat.completion"
    assert answer.model == "ada" and answer.id.startswith("chatcmpl-") and answer.created > 1_700_000_000
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer._request_id


def stream():
    client = openai.OpenAI(**SETTINGS)
    pieces, last = [], None
    with client.chat.completions.create(
        model=MODEL, messages=[user("a b c")], stream=True, stream_options={"include_usage": True}
    ) as chunks:
        for chunk in chunks:
            assert chunk.object == "chat.completion.chunk"
            pieces.append(chunk.choices[0].delta.content or "")
            last = chunk
    assert "".join(pieces) == "echo: a b c" and len(pieces) > 2, pieces
    assert last.choices[0].finish_reason == "stop" and last.usage.total_tokens > 0


def stream_accumulated():
    client = openai.OpenAI(**SETTINGS)
    with client.chat.completions.stream(model=MODEL, messages=[user("a b c")]) as events:
        kinds = [event.type for event in events]
        final = events.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds, kinds
    assert final.choices[0].message.content == "echo: a b c"


def asynchronous():
    async def run():
        async with openai.AsyncOpenAI(**SETTINGS) as client:
            async def one(n):
                answer = await client.chat.completions.create(model=MODEL, messages=[user(f"number {n}")])
                return answer.choices[0].message.content

            answers = await asyncio.gather(*(one(n) for n in range(8)))
            assert answers == [f"echo: number {n}" for n in range(8)], answers
            text = ""
            async for chunk in await client.chat.completions.create(model=MODEL, messages=[user("x y")], stream=True):
                text += chunk.choices[0].delta.content or ""
            assert text == "echo: x y", text

    asyncio.run(run())


def models():
    client = openai.OpenAI(**SETTINGS)
    found = {model.id: model for model in client.models.list()}
    assert found[MODEL].owned_by == "agentsvc" and found[MODEL].created > 1_700_000_000
    assert client.models.retrieve(MODEL) == found[MODEL]


def tools():
    """The round trip of the official guide; the scripted model calls `look` and then says what it was told."""
    client = openai.OpenAI(**SETTINGS)
    messages = [user("what is up?")]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=[LOOK], tool_choice="auto")
    assert first.choices[0].finish_reason == "tool_calls", first
    call = first.choices[0].message.tool_calls[0]
    assert call.function.name == "look" and json.loads(call.function.arguments) == {"where": "up"}
    messages.append(first.choices[0].message)
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "the sky"})
    second = client.chat.completions.create(model=MODEL, messages=messages, tools=[LOOK])
    assert second.choices[0].message.content == "You told me: the sky", second
    assert second.choices[0].message.tool_calls is None


def streamed_tools():
    client = openai.OpenAI(**SETTINGS)
    with client.chat.completions.stream(model=MODEL, messages=[user("what is up?")], tools=[LOOK]) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0]
    assert message.finish_reason == "tool_calls", message
    assert json.loads(message.message.tool_calls[0].function.arguments) == {"where": "up"}


def image():
    client = openai.OpenAI(**SETTINGS)
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
    ]
    answer = client.chat.completions.create(model=MODEL, messages=[user(parts)])
    assert answer.choices[0].message.content == f"I see image/png of {len(PIXEL)}", answer


def errors():
    def refused(kind, call, **settings):
        try:
            call(openai.OpenAI(**{**SETTINGS, **settings}))
        except kind as error:
            assert type(error) is kind, error
            assert error.request_id, "the id for the log"
            # `error` is a sentence: the client hands it on as the body, and the rest stands in the response.
            assert isinstance(error.body, str) and len(error.body) > 10, error.body
            rest = error.response.json()
            assert rest["message"] == error.body and rest["type"], rest
            return rest
        raise AssertionError(f"{kind} was expected")

    def chat(**asked):
        given = {"model": MODEL, "messages": [user("x")], **asked}
        return lambda client: client.chat.completions.create(**given)

    assert refused(openai.AuthenticationError, chat(), api_key="wrong")["code"] == "invalid_api_key"
    assert refused(openai.NotFoundError, lambda client: client.models.retrieve("nobody"))["param"] == "model"
    assert refused(openai.BadRequestError, chat(n=2))["param"] == "n"
    bad = [user([{"type": "image_url", "image_url": {"url": "http://localhost/cat.png"}}])]
    assert refused(openai.BadRequestError, chat(messages=bad))["param"] == "messages[0].content[0].image_url.url"


def provider_fails():
    """A turn that failed is not repeated by the client's own retries."""
    client = openai.OpenAI(**{**SETTINGS, "max_retries": 2})
    try:
        client.chat.completions.create(model=MODEL, messages=[user("x")])
    except openai.InternalServerError as error:
        assert error.response.json()["code"] == "provider_refused", error.response.text
        assert error.response.request.headers.get("x-stainless-retry-count") == "0"
    else:
        raise AssertionError("an error was expected")


def stream_breaks():
    client = openai.OpenAI(**SETTINGS)
    text = ""
    try:
        for chunk in client.chat.completions.create(model=MODEL, messages=[user("x")], stream=True):
            text += chunk.choices[0].delta.content or ""
    except openai.APIError as error:
        assert len(error.message) > 10 and "occurred during streaming" not in error.message, error.message
        assert error.code == "provider_error" and error.type == "server_error", error.code
    else:
        raise AssertionError(f"an error was expected after {text!r}")
    assert text


globals()[CASE]()
print("passed")
