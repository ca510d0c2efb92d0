"""The official `a2a-sdk` package of version 0.3 as a server: `a2a_sdk_server_v0.py`. Prints its URL; echoes messages, and asks for more
when it is told `ask`."""

import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        if text == "plain":
            await event_queue.enqueue_event(new_agent_text_message("a plain message"))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if text == "ask":
            message = updater.new_agent_message([Part(root=TextPart(text="ask what?"))])
            await updater.requires_input(message, final=True)
            return
        await updater.add_artifact([Part(root=TextPart(text=f"echo: {text}"))])
        await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


listening = socket.create_server(("127.0.0.1", 0))
URL = f"http://127.0.0.1:{listening.getsockname()[1]}"
card = AgentCard(
    name="Echo",
    description="Echoes what it is told.",
    url=f"{URL}/",
    version="1",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
)
handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore())
app = A2AStarletteApplication(agent_card=card, http_handler=handler).build()
print(URL, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
