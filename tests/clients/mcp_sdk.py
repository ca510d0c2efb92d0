"""The official `mcp` package as a client of a daemon: `mcp_sdk.py <url> <key> <agent> <mode>`. Raises when something differs.

`mode` is `auto` (the newest version), `legacy` (with `initialize`) or `public` (without a key). With `stdio:<program>:<home>` as the
URL the client starts `<program> --home <home> mcp` itself.
"""

import asyncio
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL, KEY, AGENT, MODE = sys.argv[1:5]
AGENTS = {"agentsvc_agent_ada", "agentsvc_agent_assistant"}


def transport(**headers):
    if MODE != "public":
        headers["authorization"] = f"Bearer {KEY}"
    return streamable_http_client(URL, http_client=httpx2.AsyncClient(headers=headers, timeout=180, trust_env=False))


def stdio(**headers):
    program, home = URL.split(":")[1:]
    agent = [argument for value in headers.values() for argument in ("--agent", value)]
    return StdioServerParameters(command=program, args=["--home", home, "mcp", *agent])


def client(**headers):
    server = stdio(**headers) if URL.startswith("stdio:") else transport(**headers)
    return Client(server, mode="legacy" if MODE == "legacy" else "auto", read_timeout_seconds=180)


async def refused(call):
    try:
        await call
    except MCPError as error:
        return error.error.code
    raise AssertionError("no error")


async def names(connected):
    return {tool.name: tool for tool in (await connected.list_tools()).tools}


async def main():
    async with client() as connected:
        expected = "2025-11-25" if MODE == "legacy" else "2026-07-28"
        assert connected.protocol_version == expected, connected.protocol_version
        assert connected.server_info.name == "agentsvc" and connected.server_capabilities.tools is not None
        if MODE == "legacy":
            await connected.send_ping()
        tools = await names(connected)
        expected = {"system_time"} if MODE == "public" else {"system_time", "web_fetch", *AGENTS}
        assert set(tools) == expected, set(tools)
        time = tools["system_time"]
        assert time.description and time.input_schema["type"] == "object" and time.annotations.idempotent_hint
        told = await connected.call_tool("system_time", {"format": "weekday"})
        assert not told.is_error and told.content[0].text.endswith("day"), told
        wrong = await connected.call_tool("system_time", {"format": 3})
        assert wrong.is_error and "format" in wrong.content[0].text, wrong
        for unknown in ("no_such_tool", "file_read"):
            assert await refused(connected.call_tool(unknown, {})) == -32602
        if MODE == "public":
            return
        said = await connected.call_tool("agentsvc_agent_ada", {"message": "hello"})
        assert not said.is_error and said.content[0].text == "echo: hello", said
    async with client(**{"x-agentsvc-agent-id": AGENT}) as connected:
        assert set(await names(connected)) == {"system_time", "file_read", "file_write"}
        wrote = await connected.call_tool("file_write", {"path": "a.txt", "content": "from MCP"})
        assert not wrote.is_error, wrote
        read = await connected.call_tool("file_read", {"path": "a.txt"})
        assert "from MCP" in read.content[0].text, read
        missing = await connected.call_tool("file_read", {"path": "b.txt"})
        assert missing.is_error, missing


asyncio.run(main())
print("passed")
