"""A server made with the official `mcp` package for each of its transports: `mcp_wire_server.py <transport>`. It prints its port."""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

TRANSPORT = sys.argv[1]
server = MCPServer("wire")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def count(to: int, context: Context) -> str:
    """Counts, and tells of its progress."""
    for step in range(to):
        await context.report_progress(step + 1, to, f"step {step + 1}")
    return f"counted to {to}"


@server.tool()
async def change(context: Context) -> str:
    """Brings another tool."""
    server.add_tool(lambda: "late", name="late", description="Came later.")
    await context.session.send_tool_list_changed()
    return "changed"


class Guest(BaseModel):
    """What a person fills in."""

    name: str = Field(description="Your name", min_length=1)
    age: int = Field(default=7, ge=0)
    sure: bool = True


@server.tool()
async def greet(context: Context) -> str:
    """Asks a person for a name."""
    answer = await context.elicit("Who are you?", Guest)
    if answer.action != "accept":
        return answer.action
    return f"hello {answer.data.name}, {answer.data.age}, {answer.data.sure}"


@server.tool()
async def sign_in(context: Context) -> str:
    """Asks a person to open a page."""
    answer = await context.elicit_url("Sign in", "https://sign.in/", "e1")
    return answer.action


@server.tool()
async def summarize(text: str, context: Context) -> str:
    """Has the client's model summarize a text."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"Summarize: {text}"))
    request = context.request_context.request_id
    answer = await context.session.create_message([message], max_tokens=20, system_prompt="Be brief.", related_request_id=request)
    return f"{answer.role} {answer.model} {answer.stop_reason}: {answer.content.text}"


@server.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"the note {name}"


@server.resource("note://first")
def first() -> str:
    """The first note."""
    return "the first note"


@server.prompt()
def review(subject: str) -> str:
    """Asks for a review."""
    return f"Review {subject}."


if TRANSPORT == "stdio":
    server.run()
else:
    app = server.sse_app() if TRANSPORT == "sse" else server.streamable_http_app()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
