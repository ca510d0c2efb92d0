"""Runs the cases of adapters: `AGENTSVC_BIN=... python tests/channels/run.py [platform [case...]]`."""

import concurrent.futures
import importlib
import os
import sys

import shared
from harness import run

#: Those whose cases take longest come first.
PLATFORMS = ["email", "telegram", "matrix", "wechat", "mattermost", "twitch", "line", "whatsapp", "ntfy", "webhook"]
#: Cases at once: most of their time they wait.
AT_ONCE = 6


def functions(module):
    return {name.removeprefix("case_"): case for name, case in vars(module).items() if name.startswith("case_")}


def cases(name):
    """The cases of a platform."""
    # `email` is also a module of the standard library.
    module = importlib.import_module(f"platform_{name}")
    known = {**functions(shared), **functions(module)}
    if not module.Platform.refuses:
        known.pop("a_refused_send_is_called_refused", None)
    if module.Platform.shows_pictures:
        known.pop("a_picture_goes_out_as_its_caption_and_link", None)
    if module.Platform.takes_files:
        known.pop("a_file_that_cannot_be_shown_is_called_refused", None)
    return [(getattr(case, "platform", module.Platform), name, case) for name, case in known.items()]


def main():
    assert os.environ.get("AGENTSVC_BIN"), "AGENTSVC_BIN names the daemon"
    platforms, wanted = (sys.argv[1:2] or PLATFORMS), sys.argv[2:]
    if platforms == ["list"]:
        for name in PLATFORMS:
            print(name, *(case for _, case, _ in cases(name)))
        return
    chosen = [case for name in platforms for case in cases(name) if not wanted or case[1] in wanted]
    assert len(chosen) >= max(len(wanted), 1), f"there is no such case: {wanted}"
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for running in concurrent.futures.as_completed([pool.submit(run, *case) for case in chosen]):
            said, passed = running.result()
            failed += not passed
            print(said, file=sys.stdout if passed else sys.stderr, flush=True)
    if failed:
        sys.exit(f"{failed} failed")
    print("passed")


if __name__ == "__main__":
    main()
