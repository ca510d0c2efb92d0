"""A server made with the official `mcp` package that asks for a sign-in, and its authorization server, which agrees at once."""

import os
import secrets
import socket
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

TOKEN_SECS = int(os.environ.get("TOKEN_SECS", "3600"))


class Provider:
    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or ["read"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.tokens(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refresh[token.token]
        return self.tokens(client, scopes, None)

    async def load_access_token(self, token):
        found = self.access.get(token)
        return found if found and found.expires_at > time.time() else None

    async def revoke_token(self, token):
        self.access.clear()
        self.refresh.clear()
        print("revoked", flush=True)

    def tokens(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        end = int(time.time()) + TOKEN_SECS
        self.access[access] = AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=end, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        print("tokens", resource, flush=True)
        return OAuthToken(access_token=access, expires_in=TOKEN_SECS, scope=" ".join(scopes), refresh_token=refresh)


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
root = f"http://127.0.0.1:{listener.getsockname()[1]}"
server = MCPServer(
    "guarded",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=root,
        resource_server_url=f"{root}/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["read"], default_scopes=["read"]),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
        validate_token_resource=False,
    ),
)


@server.tool()
def whoami() -> str:
    """Says as which client it is called."""
    return f"client {get_access_token().client_id}"


print(root, flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
