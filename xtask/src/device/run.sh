#!/bin/sh
# Runs everything of this bundle and writes results/*.txt and results/*.json beside it (or into the folder given as the
# first argument). Needs Linux on x86-64 with glibc 2.34 or newer (2021: Ubuntu 22.04, Debian 12, RHEL 9) and, for the GPU, its
# driver; no Rust and no CUDA toolkit. What is there besides is used: compute-sanitizer, and Python with PyTorch and Triton.
set -u
cd "$(dirname "$0")" || exit 1
results="${1:-results}"
mkdir -p "$results" || exit 1
failed=0

if ! bin/tilewright --version >"$results/version.txt" 2>&1; then
    echo "FAILED  the programs do not start on this machine: they need Linux on x86-64 with glibc 2.34 or newer"
    sed 's/^/    /' "$results/version.txt"
    exit 1
fi

gpu=no
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >"$results/machine.txt" 2>&1; then
    gpu=yes
    echo "GPU: $(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -n 1)"
else
    echo "NO GPU on this machine: the emulator runs everything, and nothing is timed" | tee "$results/machine.txt"
fi
uname -a >>"$results/machine.txt"

# run NAME PATTERN COMMAND…: one step, with the lines around the pattern if it fails.
run() {
    name="$1"
    pattern="$2"
    shift 2
    if "$@" >"$results/$name.txt" 2>&1; then
        echo "passed  $name"
    else
        echo "FAILED  $name (exit code $?)"
        if ! grep -A 2 -e "$pattern" "$results/$name.txt" | head -n 40 | sed 's/^/    /' | grep .; then
            tail -n 5 "$results/$name.txt" | sed 's/^/    /'
        fi
        failed=$((failed + 1))
    fi
}

for program in bin/example-*; do
    run "$(basename "$program")" "^error" "$program"
done

run device-check "WRONG\|error" bin/device-check --json "$results/device-check.json" kernels
sed -n '/kernels, .* comparisons/p' "$results/device-check.txt"

# Single instructions, with inputs and expected outputs; and what no manual says of the hardware.
run conformance "WRONG\|error" bin/device-check --conformance conformance --json "$results/conformance.json"
sed -n '/^question\|^    answer/p' "$results/conformance.txt"

# The same comparisons once more, with another judge of addresses, initialisation, races and barriers.
if [ "$gpu" = no ]; then
    echo "not tried  compute-sanitizer: there is no GPU"
elif ! command -v compute-sanitizer >/dev/null 2>&1; then
    echo "not tried  compute-sanitizer: it is not in PATH (it comes with the CUDA toolkit)"
else
    for tool in memcheck racecheck initcheck synccheck; do
        run "sanitizer-$tool" "=========" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            bin/device-check --no-times kernels
    done
fi

if [ "$gpu" = no ]; then
    echo "not tried  baselines: there is no GPU"
elif ! command -v python3 >/dev/null 2>&1; then
    echo "not tried  baselines: there is no python3"
else
    python3 baselines.py --json "$results/baselines.json" >"$results/baselines.txt" 2>&1
    case $? in
    0) echo "passed  baselines" ;;
    3) echo "not tried  $(tail -n 1 "$results/baselines.txt")" ;;
    *)
        echo "FAILED  baselines"
        tail -n 5 "$results/baselines.txt" | sed 's/^/    /'
        failed=$((failed + 1))
        ;;
    esac
fi

# Kernels beside the same work by PyTorch and Triton, and beside a copy of as many bytes: all take turns.
if [ "$gpu" = yes ] && command -v python3 >/dev/null 2>&1; then
    python3 peers.py --json "$results/peers.json" rows.json bin/device-check kernels >"$results/peers.txt" 2>&1
    case $? in
    0)
        echo "passed  peers"
        sed 's/^/    /' "$results/peers.txt"
        ;;
    3) echo "not tried  $(tail -n 1 "$results/peers.txt")" ;;
    *)
        echo "FAILED  peers"
        tail -n 5 "$results/peers.txt" | sed 's/^/    /'
        failed=$((failed + 1))
        ;;
    esac
else
    echo "not tried  peers: there is no GPU, or no python3"
fi

echo "$failed failed; results are in $results"
[ "$failed" -eq 0 ]
