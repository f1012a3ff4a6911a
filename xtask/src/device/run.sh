#!/bin/sh
# Runs everything of this bundle and writes results/*.txt and results/*.json beside it (or into the folder given as the
# first argument). Needs a C library and, for the GPU, its driver; no Rust and no CUDA toolkit.
set -u
cd "$(dirname "$0")" || exit 1
results="${1:-results}"
mkdir -p "$results" || exit 1
failed=0

if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >"$results/machine.txt" 2>&1; then
    echo "GPU: $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)"
else
    echo "NO GPU on this machine: the emulator runs everything, and nothing is timed" | tee "$results/machine.txt"
fi
uname -a >>"$results/machine.txt"

for program in bin/example-*; do
    name="$(basename "$program")"
    if "$program" >"$results/$name.txt" 2>&1; then
        echo "passed  $name"
    else
        echo "FAILED  $name (exit code $?)"
        tail -n 5 "$results/$name.txt" | sed 's/^/    /'
        failed=$((failed + 1))
    fi
done

if bin/device-check --json "$results/device-check.json" kernels >"$results/device-check.txt" 2>&1; then
    echo "passed  device-check"
else
    echo "FAILED  device-check (exit code $?)"
    grep -A 2 -e WRONG -e error "$results/device-check.txt" | head -n 40 | sed 's/^/    /'
    failed=$((failed + 1))
fi
sed -n '/kernels, .* comparisons/p' "$results/device-check.txt"
echo "$failed failed; results are in $results"
[ "$failed" -eq 0 ]
