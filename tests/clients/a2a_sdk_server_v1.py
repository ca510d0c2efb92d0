"""The official `a2a-sdk` package of version 1 as a server: `a2a_sdk_server_v1.py`. Prints its URL; echoes messages, and asks for more
when it is told `ask`."""

import socket

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        if text == "plain":
            await event_queue.enqueue_event(new_text_message("a plain message"))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if text == "ask":
            await updater.requires_input(updater.new_agent_message([Part(text="ask what?")]))
            return
        await updater.add_artifact([Part(text=f"echo: {text}")])
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


listening = socket.create_server(("127.0.0.1", 0))
URL = f"http://127.0.0.1:{listening.getsockname()[1]}"
card = AgentCard(
    name="Echo",
    description="Echoes what it is told.",
    version="1",
    supported_interfaces=[AgentInterface(url=f"{URL}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc"))
print(URL, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
