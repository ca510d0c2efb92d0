#!/usr/bin/env bash
# Profiles of the hottest paths, and where their time goes by thread and area: reads, creates, whole turns, and one
# event that fires many triggers. Needs Linux's perf. benches/profile.sh [directory for the profiles]
set -euo pipefail
cd "$(dirname "$0")/.."
out="${1:-target/profiles}"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
export AGENTSVC_BENCH_PERF="$out"
cargo bench --bench all -- http_load reads creates turns
AGENTSVC_BENCH_TRIGGERS=100000 cargo bench --bench all -- trigger_match firing
for name in reads creates turns firing; do
  echo
  echo "## $name"
  perf script --input "$out/$name.data" --fields comm,ip,sym,dso 2>/dev/null | awk -f benches/areas.awk
done
