"""A server made with the official `mcp` package for each of its transports: `mcp_wire_server.py <transport> <port>`."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations

TRANSPORT, PORT = sys.argv[1], int(sys.argv[2])
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
    server.run(TRANSPORT, host="127.0.0.1", port=PORT)
