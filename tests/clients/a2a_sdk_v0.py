"""The official `a2a-sdk` package of version 0.3 as a client of a daemon: `a2a_sdk_v0.py <url> <agent>`. Raises when something differs."""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory, create_text_message_object
from a2a.client.errors import A2AClientJSONRPCError
from a2a.types import TaskIdParams, TaskQueryParams

URL, AGENT = sys.argv[1:3]


def told(task):
    return task.artifacts[0].parts[0].root.text


async def main():
    async with httpx.AsyncClient(timeout=180, trust_env=False) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        assert card.url == f"{URL}/a2a" and card.capabilities.streaming, card
        assert [skill.id for skill in card.skills] == [AGENT], card
        for is_streaming in (False, True):
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=is_streaming)).create(card)
            message = create_text_message_object(content=f"hello {is_streaming}")
            events = [event async for event in client.send_message(message)]
            task = events[-1][0]
            assert task.status.state.value == "completed", task
            assert told(task) == f"echo: hello {is_streaming}", task
            assert not is_streaming or len(events) > 3, events
            read = await client.get_task(TaskQueryParams(id=task.id))
            assert told(read) == told(task) and read.history[0].message_id == message.message_id, read
            again = [event async for event in client.send_message(message)]
            assert again[-1][0].id == task.id, "what is sent again is the same task"
            followed = create_text_message_object(content="and then?")
            followed.context_id = task.context_id
            events = [event async for event in client.send_message(followed)]
            assert events[-1][0].context_id == task.context_id and events[-1][0].id != task.id
            for call in (client.cancel_task(TaskIdParams(id=task.id)), client.get_task(TaskQueryParams(id="none"))):
                try:
                    await call
                except A2AClientJSONRPCError:
                    continue
                raise AssertionError("no error")


asyncio.run(main())
print("ok")
