"""Runs what the documentation shows: the `console` and `sh run` blocks of pages, one after the other.

    transcripts.py <binary> <home of a running daemon> <its address> <pages...>

All commands of a `sh run` block must succeed, and its requests too. In a `console` block, a line that begins with `$ ` is a command; those behind it that are indented belong to it while it ends in a backslash. What
follows is its output. Output that is JSON has the same keys and the same kinds of values, and the same texts; `...` at the
end of an object stands for more keys. Other output has the same lines; a line `...` stands for any lines. Ids and numbers may
differ everywhere.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

END = "\x1e"
BLOCK = """\
failed=
curl() { command curl --fail-with-body --silent --show-error "$@"; }
exec 3>&1 1>&2
trap 'failed=$BASH_COMMAND' ERR
%s
trap - ERR
exec 1>&3
unset -f curl
printf %%s "$failed"
"""


def commands(page: str) -> list[tuple[str, str]]:
    """Each command with its output. A whole block of commands says nothing but the first of them that failed."""
    found: list[tuple[str, str]] = []
    for kind, block in re.findall(r"^```(console|sh run)\n(.*?)^```$", page, re.S | re.M):
        if kind == "sh run":
            found.append((BLOCK % block, ""))
            continue
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.split("\n")
            end = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
            found.append(("\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :])))
    return found


def script(all_commands: list[tuple[str, str]], address: str) -> str:
    lines = ["trap 'kill -9 $(jobs -p) 2>/dev/null' EXIT"]
    for command, _ in all_commands:
        command = re.sub(r"\b(localhost|127\.0\.0\.1):4545\b", address, command)
        if command.endswith(" &"):
            # A daemon is ready before the next command.
            command = f"{command[:-2]} >/dev/null 2>&1 &\nuntil curl -sf http://{address}/api/ready >/dev/null; do read -rt 0.05 <> <(:); done"
        lines += [command, f"printf '{END}'"]
    return "\n".join(lines)


def plain(text: str) -> str:
    # Comments of streams come whenever nothing else does.
    text = re.sub(r"^:.*\n\n?", "", text, flags=re.M)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>", text)
    return re.sub(r"\d+(\.\d+)?", "0", text)


def is_like(shown: object, seen: object) -> bool:
    if isinstance(shown, dict) and isinstance(seen, dict):
        keys = set(shown) - {"..."}
        is_same = keys <= set(seen) if "..." in shown else keys == set(seen)
        return is_same and all(is_like(shown[key], seen[key]) for key in keys)
    if isinstance(shown, list) and isinstance(seen, list):
        return len(shown) == len(seen) and all(map(is_like, shown, seen))
    if isinstance(shown, str) and isinstance(seen, str):
        return plain(shown) == plain(seen)
    if isinstance(shown, bool) or isinstance(seen, bool) or shown is None:
        return shown is seen
    return isinstance(shown, (int, float)) and isinstance(seen, (int, float))


def is_output(shown: str, seen: str) -> bool:
    if shown.startswith(("{", "[")):
        try:
            return is_like(json.loads(re.sub(r",\s*\.\.\.\s*}", ',"...":0}', shown)), json.loads(seen))
        except ValueError:
            return False
    parts = plain(shown).strip().split("\n...\n")
    return re.fullmatch("\n(.*\n)*".join(map(re.escape, parts)), plain(seen).strip()) is not None


def run(page: Path, binary: str, home: str, address: str) -> list[str]:
    shown = commands(page.read_text())
    with tempfile.TemporaryDirectory() as folder:
        user, path = Path(folder) / "user", Path(folder) / "bin"
        user.mkdir()
        path.mkdir()
        (path / "agentsvc").symlink_to(binary)
        (user / ".agentsvc").symlink_to(home)
        # A key of a provider that no page calls.
        (user / "key.txt").write_text("sk-of-the-documentation\n")
        environment = {"HOME": str(user), "PATH": f"{path}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        command = ["bash", "-c", script(shown, address)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=user)
    outputs = done.stdout.split(END)[:-1]
    wrong = [] if len(outputs) == len(shown) else [f"{page}: {len(outputs)} of {len(shown)} commands ended: {done.stderr}"]
    for (command, output), seen in zip(shown, outputs):
        if not is_output(output, seen):
            wrong.append(f"{page}: $ {command}\n--- shown\n{output}\n--- seen\n{seen}\n--- stderr\n{done.stderr}")
    return wrong


def main() -> int:
    binary, home, address, *pages = sys.argv[1:]
    wrong: list[str] = []
    for page in pages:
        wrong += run(Path(page), binary, home, address)
    print("\n\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
