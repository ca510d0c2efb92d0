"""The official `a2a-sdk` package of version 1 as a client of a daemon: `a2a_sdk_v1.py <url> <agent>`. Raises when something differs."""

import asyncio
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

URL, AGENT = sys.argv[1:3]


async def refused(call, error):
    try:
        await call
    except error:
        return
    raise AssertionError("no error")


async def drained(events):
    return [event async for event in events]


async def main():
    async with httpx.AsyncClient(timeout=180, trust_env=False) as http:
        card = await A2ACardResolver(http, URL).get_agent_card()
        assert [skill.id for skill in card.skills] == [AGENT], card
        versions = [interface.protocol_version for interface in card.supported_interfaces]
        assert versions == ["1.0", "0.3"] and card.capabilities.push_notifications, card
        for is_streaming in (False, True):
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=is_streaming)).create(card)
            request = SendMessageRequest(message=new_text_message(f"hello {is_streaming}", role=Role.ROLE_USER))
            events = await drained(client.send_message(request))
            assert events[0].HasField("task"), events
            task = await client.get_task(GetTaskRequest(id=events[0].task.id))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
            assert get_artifact_text(task.artifacts[0]) == f"echo: hello {is_streaming}", task
            if is_streaming:
                assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
                assert any(event.HasField("artifact_update") for event in events), events
            again = await drained(client.send_message(request))
            assert again[0].task.id == task.id, "what is sent again is the same task"
            await refused(client.cancel_task(CancelTaskRequest(id=task.id)), TaskNotCancelableError)
            await refused(client.get_task(GetTaskRequest(id="none")), TaskNotFoundError)
            if is_streaming:
                ended = client.subscribe(SubscribeToTaskRequest(id=task.id))
                await refused(drained(ended), UnsupportedOperationError)


asyncio.run(main())
print("ok")
