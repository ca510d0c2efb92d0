"""Names: the group of a route, and the name of its method."""

import re

# Protocols of their own, for which there are other clients; and routes that only web pages use.
LEFT_OUT = re.compile(
    r"/api/(mcp|mcp/servers/\{id\}/auth/callback|agents/\{id\}/ws|terminal/ws|openapi\.json|web-chat/.*"
    r"|auth/(callback|login.*|dashboard.*))$"
)

# Groups whose routes belong to another; all groups of one route belong to `system`.
GROUPS = {
    "backup": "backups",
    "restore": "backups",
    "cron": "schedules",
    "clawhub-cn": "clawhub",
    "event-hooks": "hooks",
    "events": "system",
    "health": "system",
    "migrate": "migration",
    "profiles": "tools",
}

# Where the rules below give a name that says too little, or one that two routes would share.
METHODS = {
    "DELETE /api/agents/bulk": "delete_many",
    "POST /api/agents/bulk": "create_many",
    "POST /api/agents/bulk/start": "start_many",
    "POST /api/agents/bulk/stop": "stop_many",
    "GET /api/agents/{id}/attach": "attach",
    "POST /api/agents/{id}/command": "run_command",
    "PUT /api/agents/{id}/files/{filename}": "write_file",
    "POST /api/agents/{id}/message": "send_message",
    "GET /api/agents/{id}/session": "get_current_session",
    "GET /api/agents/{id}/sessions/by-label/{label}": "get_session_by_label",
    "GET /api/agents/{id}/sessions/{session_id}/trajectory": "export_session",
    "PUT /api/agents/{id}/update": "update_description",
    "POST /api/agents/{id}/upload": "upload_file",
    "GET /api/approvals/audit": "list_decided",
    "POST /api/approvals/batch": "decide_many",
    "POST /api/backup": "create",
    "GET /api/channels/registry": "list_platforms",
    "GET /api/channels/registry/{name}": "get_platform",
    "DELETE /api/channels/sidecar/{name}": "delete_adapter",
    "POST /api/channels/sidecar/{name}/configure": "configure_adapter",
    "DELETE /api/channels/{name}/configure": "delete",
    "GET /api/clawhub-cn/browse": "browse_mirror",
    "GET /api/clawhub-cn/search": "search_mirror",
    "POST /api/comms/send": "send_message",
    "POST /api/comms/task": "post_task",
    "GET /api/config/export": "export",
    "PUT /api/cron/jobs/{id}/enable": "enable_cron_job",
    "GET /api/event-hooks": "list_event_hooks",
    "POST /api/events": "publish_event",
    "POST /api/hooks/agent": "send_message",
    "GET /api/inbox/status": "get_inbox",
    "POST /api/init": "initialize",
    "GET /api/logs/stream": "stream_logs",
    "GET /api/marketplace/search": "search_marketplace",
    "GET /api/mcp/catalog/{id}": "get_catalog_entry",
    "POST /api/mcp/servers/{id}/accept-tools": "accept_server_tools",
    "DELETE /api/mcp/servers/{id}/auth/revoke": "delete_server_auth",
    "POST /api/media/image": "generate_image",
    "POST /api/media/music": "generate_music",
    "POST /api/media/speech": "generate_speech",
    "POST /api/media/video": "generate_video",
    "DELETE /api/memory/agents/{id}": "delete_of_agent",
    "GET /api/memory/agents/{id}": "list_of_agent",
    "PUT /api/memory/agents/{id}/kv/{key}": "set_agent_kv",
    "POST /api/memory/agents/{id}/relations": "store_agent_relations",
    "POST /api/memory/bulk-delete": "delete_many",
    "GET /api/memory/user/{user_id}": "list_about_user",
    "POST /api/migrate": "run",
    "GET /api/migrate/detect": "detect",
    "POST /api/models/aliases": "create_alias",
    "DELETE /api/models/aliases/{alias}": "delete_alias",
    "GET /api/models/{id}": "get",
    "POST /api/prompts/experiments/{id}/feedback": "rate_experiment",
    "POST /api/providers/{name}/key": "set_key",
    "GET /api/providers/{name}/oauth/poll/{poll_id}": "poll_oauth",
    "GET /api/queue/status": "get_queue",
    "GET /api/registry/schema": "get_registry_schema",
    "POST /api/restore": "restore",
    "POST /api/shutdown": "shutdown",
    "POST /api/skills/{name}/evolve/delete": "delete",
    "DELETE /api/skills/{name}/evolve/file": "delete_file",
    "POST /api/skills/{name}/evolve/file": "write_file",
    "POST /api/skills/{name}/evolve/patch": "patch",
    "POST /api/skills/{name}/evolve/rollback": "rollback",
    "POST /api/skills/{name}/evolve/update": "update",
    "GET /api/tasks/list": "list_recent",
    "GET /api/usage/export": "export",
    "POST /api/workflows/import": "create_from_registry",
    "GET /api/world/events": "stream_events",
    "GET /api/world/rehearsals/{id}/fires.csv": "export_rehearsal_fires",
}
# Words of the languages and of the clients that shapes cannot have as names.
TAKEN = set(
    "Any ApiError ArrayBuffer AsyncCalls AsyncIterable AsyncIterator AsyncStream Blob Calls Client Dict Error Event File Groups"
    " Iterator List Literal NotRequired Options Promise Record Stream TypeAlias TypedDict Uint8Array Unpack".split()
)
VERBS = {"DELETE": "delete", "PUT": "set", "PATCH": "update", "GET": "get"}
CREATES = ("Add", "Create", "Let", "Post", "Save", "Set", "Start", "Store", "Write", "Request")


def shape(name: str) -> str:
    return name + "Shape" if name in TAKEN else name


def snake(text: str) -> str:
    return re.sub(r"\W+", "_", text)


def pascal(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[\W_]+", text))


def camel(text: str) -> str:
    return text[0] + pascal("_" + text)[1:] if "_" not in text else pascal(text)[:1].lower() + pascal(text)[1:]


def singular(word: str) -> str:
    if word.endswith("ies") and word != "series":
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us")) else word


def group_of(path: str, sizes: dict[str, int]) -> str:
    """The module of a route; `sizes` has the number of routes of each first word."""
    word = path.split("/")[2]
    return snake(GROUPS.get(word, "system" if sizes[word] == 1 else word))


def method_of(group: str, verb: str, path: str, summary: str) -> str:
    """Such as `list`, `create`, `stop`, `list_sessions` or `set_mode`."""
    if given := METHODS.get(f"{verb} {path}"):
        return given
    rest = path.split("/")[2:]
    if snake(rest[0]) in (group, singular(group)) or GROUPS.get(rest[0]) == "migration":
        rest = rest[1:]
    words = [snake(part) for part in rest if "{" not in part]
    # What stands before a parameter is one of many.
    words = [singular(word) if _before_parameter(rest, word) else word for word in words]
    is_item = bool(rest) and "{" in rest[-1]
    first = summary.split()[0]
    if not words:
        names = {"GET": "get" if is_item or first != "List" else "list", "POST": "create", "DELETE": "delete"}
        return names.get(verb, "update" if is_item else "set")
    noun = "_".join(words)
    if verb == "GET":
        if words[-1] in (first.lower(), "search", "stream"):
            return "_".join([words[-1], *words[:-1]])
        return f"{'list' if first == 'List' and not is_item else 'get'}_{noun}"
    if verb == "POST":
        if words[-1] != singular(words[-1]) and first in CREATES or first in ("Create", "Add") and len(words) == 1:
            return f"create_{'_'.join([*words[:-1], singular(words[-1])])}" if words[-1] != "create" else "create"
        return "_".join([words[-1], *map(singular, words[:-1])])
    if verb == "PUT" and is_item:
        return f"update_{noun}"
    return f"{VERBS[verb]}_{noun}"


def _before_parameter(parts: list[str], word: str) -> bool:
    return any(snake(a) == word and "{" in b for a, b in zip(parts, parts[1:]))
