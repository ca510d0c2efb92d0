"""A server made with the official `mcp` package, with tools that behave and tools that do not."""

import asyncio
import json
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("official")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"sum {a + b}"


@server.tool()
def environment() -> str:
    """Shows what the server was started with."""
    return json.dumps({"cwd": os.getcwd(), "variables": dict(os.environ), "arguments": sys.argv[1:]})


@server.tool()
def read(path: str) -> str:
    """Reads a file."""
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return f"failed: {error}"


@server.tool()
def write(path: str, text: str) -> str:
    """Writes a file."""
    try:
        with open(path, "w") as file:
            file.write(text)
        return "written"
    except OSError as error:
        return f"failed: {error}"


@server.tool(name="Hang-On")
async def hang() -> str:
    """Never ends."""
    with open("calls", "a") as file:
        file.write("hang\n")
    await asyncio.Event().wait()


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(7)


@server.tool()
async def change(context: Context) -> str:
    """Brings another tool."""
    server.add_tool(lambda: "late", name="late", description="Came later.")
    await context.session.send_tool_list_changed()
    return "changed"


server.run()
