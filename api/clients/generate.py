#!/usr/bin/env python3
"""Write the Python and TypeScript clients from the OpenAPI document of the daemon.

    generate.py DOCUMENT          writes the generated modules
    generate.py DOCUMENT --check  lists those that are stale, and fails if there are any

DOCUMENT is a file with what `GET /api/openapi.json` serves. The test `the_clients_are_what_the_document_says` runs this
script; `WRITE_CLIENTS=1 cargo test --test clients the_clients_are` makes it write.

Each client has one module for each group of routes, with the shapes that only this group uses, and one module `shared`.
"""

import json
import sys
from pathlib import Path

from generator import python, typescript
from generator.model import Api

HERE = Path(__file__).parent


def main() -> int:
    api = Api(json.loads(Path(sys.argv[1]).read_text()))
    folders = {
        HERE / "python/src/agentsvc_client/api": python.modules(api),
        HERE / "typescript/src/api": typescript.modules(api),
    }
    stale = []
    for folder, modules in folders.items():
        folder.mkdir(parents=True, exist_ok=True)
        stale += [path for path in folder.iterdir() if path.is_file() and path.name not in modules]
        for name, text in modules.items():
            path = folder / name
            if not path.exists() or path.read_text() != text:
                stale.append(path)
    if "--check" in sys.argv:
        print(*[f"stale: {path.relative_to(HERE)}" for path in stale], sep="\n")
        return 1 if stale else 0
    for path in stale:
        text = folders[path.parent].get(path.name)
        path.write_text(text) if text is not None else path.unlink()
    print(f"{len(stale)} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
