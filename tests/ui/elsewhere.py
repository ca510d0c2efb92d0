"""Servers of other people for the tests of connections: an MCP server over HTTP that asks for a sign-in, with its authorization server."""

import http.server
import json
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with JSON."""

    def log_message(self, *_):
        pass

    def body(self):
        return self.rfile.read(int(self.headers["content-length"] or 0))

    def reply(self, status, body, headers=()):
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def serve(handler):
    """Serves until the test ends; gives the address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class SignInServer:
    """An MCP server at `url`, which serves only those who signed in; its sign-in page has a link to agree."""

    TOKEN = "token-that-is-a-secret"

    def __init__(self):
        self.is_revoked = False
        outer = self

        class Mine(Handler):
            def do_POST(self):
                body, path = self.body(), self.path.split("?")[0]
                if path == "/register":
                    return self.reply(201, {"client_id": "client-1", **json.loads(body)})
                if path == "/token":
                    return self.reply(200, {"access_token": outer.TOKEN, "token_type": "Bearer", "expires_in": 3600, "scope": "read"})
                if path == "/revoke":
                    outer.is_revoked = True
                    return self.reply(200, {})
                if self.headers["authorization"] != f"Bearer {outer.TOKEN}":
                    where = f'Bearer resource_metadata="{outer.root}/.well-known/oauth-protected-resource/mcp"'
                    return self.reply(401, {"error": "invalid_token"}, [("www-authenticate", where)])
                return self.answer(json.loads(body))

            def answer(self, message):
                if message.get("id") is None:
                    return self.reply(202, {})
                results = {
                    "initialize": lambda: {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}},
                    "tools/list": lambda: {"tools": [{"name": "inbox", "description": "Lists mail", "inputSchema": {"type": "object"}}]},
                    "ping": dict,
                }
                if message["method"] not in results:
                    return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown method"}})
                return self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]()})

            def do_GET(self):
                path, _, query = self.path.partition("?")
                if path.startswith("/.well-known/oauth-protected-resource"):
                    return self.reply(200, {"resource": outer.url, "authorization_servers": [outer.root], "scopes_supported": ["read"]})
                if path == "/.well-known/oauth-authorization-server":
                    return self.reply(200, {
                        "issuer": outer.root, "authorization_endpoint": f"{outer.root}/authorize", "token_endpoint": f"{outer.root}/token",
                        "registration_endpoint": f"{outer.root}/register", "revocation_endpoint": f"{outer.root}/revoke",
                        "response_types_supported": ["code"], "grant_types_supported": ["authorization_code"],
                        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"]})
                if path == "/authorize":
                    asked = dict(urllib.parse.parse_qsl(query))
                    back = f"{asked['redirect_uri']}?{urllib.parse.urlencode({'code': 'code-1', 'state': asked['state']})}"
                    return self.reply(200, f"<title>Sign in</title><a href='{back.replace('&', '&amp;')}'>Agree</a>")
                return self.reply(404, {"error": "no such path"})

            def do_DELETE(self):
                self.reply(405, {})

        self.root = serve(Mine)
        self.url = f"{self.root}/mcp"
