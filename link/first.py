"""Writes link/first.ld: which code a start runs, as seen by callgrind. How it is called stands in link/README.md.

    python3 link/first.py BINARY CALLGRIND_DUMP > link/first.ld
"""

import bisect
import collections
import re
import subprocess
import sys

# What all instances of one generic function may take for each of them that runs; where they take more, the few that
# run stay where they are.
BYTES_PER_INSTANCE = 32768


def symbols(binary):
    """Address, size and name of every function, by address."""
    listed = subprocess.run(["nm", "-S", "--defined-only", binary], capture_output=True, text=True, check=True)
    found = (re.match(r"([0-9a-f]+) ([0-9a-f]+) [tTwW] (\S+)$", line) for line in listed.stdout.splitlines())
    return sorted((int(m[1], 16), int(m[2], 16), m[3]) for m in found if m)


def addresses(dump, binary):
    """Every address of `binary` that ran (callgrind with --dump-instr=yes)."""
    ran, names, inside, last = set(), {}, False, 0
    for line in open(dump, encoding="utf-8"):
        if line.startswith(("ob=", "cob=")):
            number, _, name = line.split("=", 1)[1].strip().partition(" ")
            names.setdefault(number, name)
            if line.startswith("ob="):
                inside = names[number].endswith(binary)
            continue
        cost = re.match(r"(0x[0-9a-f]+|\+\d+|-\d+|\*) ", line)
        if cost:
            place = cost[1]
            last = int(place, 16) if place.startswith("0x") else last if place == "*" else last + int(place)
            if inside:
                ran.add(last)
    return ran


def pattern(name):
    """The name without what changes from build to build."""
    name = re.sub(r"\.(llvm|constprop|isra|part)\..*$", "", name)
    if name.startswith("_ZN"):
        return re.sub(r"17h[0-9a-f]{16}E.*$", "17h*", name)
    return re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name) + "*" if name.startswith("_R") else name


def main(binary, dump):
    all_symbols = symbols(binary)
    starts = [address for address, _, _ in all_symbols]
    ran = set()
    for address in addresses(dump, binary):
        at = bisect.bisect_right(starts, address) - 1
        if at >= 0 and address < starts[at] + all_symbols[at][1]:
            ran.add(all_symbols[at])
    run = collections.Counter(pattern(name) for _, _, name in ran)
    size, count = collections.Counter(), collections.Counter()
    for _, bytes_, name in all_symbols:
        size[pattern(name)] += bytes_
        count[pattern(name)] += 1
    kept = sorted(p for p in run if count[p] == run[p] or size[p] <= BYTES_PER_INSTANCE * run[p])
    print("/* Code that runs at a start, side by side. Made by link/first.py: see link/README.md. */")
    print("SECTIONS\n{\n  .text.first :\n  {")
    for name in kept:
        print(f"    *(.text.{name})")
    print("  }\n}\nINSERT BEFORE .text;")


if __name__ == "__main__":
    main(*sys.argv[1:])
