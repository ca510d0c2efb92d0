"""Makes a wheel that holds the program: `python3 wheel.py BINARY VERSION PLATFORM OUT`.

PLATFORM is a platform tag, such as manylinux_2_36_x86_64. Prints the path of the wheel. The same input gives the same bytes.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

SUMMARY = "Run and supervise AI agents on your own machine"


def main(binary, version, platform, out):
    tag = f"py3-none-{platform}"
    info = f"agentsvc-{version}.dist-info"
    root = Path(__file__).resolve().parents[2]
    readme = (root / "packaging/python/README.md").read_text()
    files = {
        f"agentsvc-{version}.data/scripts/agentsvc": (Path(binary).read_bytes(), 0o755),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: agentsvc\nVersion: {version}\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n"
            f"Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}".encode(), 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: agentsvc\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        f"{info}/licenses/LICENSE-MIT": ((root / "LICENSE-MIT").read_bytes(), 0o644),
        f"{info}/licenses/LICENSE-APACHE": ((root / "LICENSE-APACHE").read_bytes(), 0o644),
    }
    record = ""
    for name, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = Path(out) / f"agentsvc-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content)
    print(path)


main(*sys.argv[1:])
