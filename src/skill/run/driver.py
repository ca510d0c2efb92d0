import sys as _sys


class _Output:
    def __init__(self, inner):
        self._inner = inner
        self.used = False

    def write(self, text):
        self.used = self.used or len(text) > 0
        return self._inner.write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        if name in ("buffer", "detach", "fileno"):
            self.used = True
        return getattr(self._inner, name)


def _start(entry):
    import os

    _sys.argv = [entry]
    _sys.path[0] = os.path.dirname(os.path.abspath(entry))
    names = _sys.modules["__main__"].__dict__
    names["__file__"] = entry
    with open(entry, "rb") as file:
        code = compile(file.read(), entry, "exec")
    output = _sys.stdout = _Output(_sys.stdout)
    exec(code, names)
    run = names.get("run")
    if output.used or not callable(run):
        return
    import inspect
    import json

    envelope = json.loads(os.pread(0, os.fstat(0).st_size, 0).decode("utf-8"))
    result = run(envelope["input"])
    if inspect.isawaitable(result):
        import asyncio

        async def wait():
            return await result

        result = asyncio.run(wait())
    if not output.used or result is not None:
        print(result if isinstance(result, str) else json.dumps(result))


_start(_sys.argv[1])
