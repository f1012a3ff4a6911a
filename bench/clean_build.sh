#!/usr/bin/env bash
# What depending on Tilewright costs: packages and seconds of a clean `cargo build` of a crate with one kernel. It depends
# on the present commit by git, if there is one: of such packages, as of those of a registry, cargo keeps nothing for the
# next build but their results, and of a path it does, which costs a sixth more CPU time.
# Fails beyond PACKAGES packages; beyond SECONDS seconds it says so, because that depends on the machine.
set -euo pipefail
PACKAGES=${PACKAGES:-19}
SECONDS_AIM=${SECONDS_AIM:-20}
root="$(cd "$(dirname "$0")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if commit=$(git -C "$root" rev-parse --verify --quiet HEAD); then
    source="git = \"file://$root\", rev = \"$commit\""
else
    source="path = \"$root/runtime\""
fi

mkdir "$work/src"
cat >"$work/Cargo.toml" <<TOML
[package]
name = "user"
version = "0.0.0"
edition = "2024"
[dependencies]
tilewright = { $source }
[workspace]
TOML
cat >"$work/src/main.rs" <<'RUST'
tilewright::schedule! {
    pub kernel Copy(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}
fn main() {
    println!("{}", Copy::KERNEL.ptx.text.len());
}
RUST

cd "$work"
cargo fetch --quiet
packages=$(cargo tree --quiet --edges normal,build --prefix none --target "$(rustc -vV | sed -n 's/^host: //p')" \
    | sed 's/ (\*)$//' | sort -u | grep -vc '^user ')
start=$(date +%s.%N)
TIMEFORMAT='%U %S'
exec 3>&2
cpu=$({ time cargo build --quiet --offline 2>&3; } 2>&1)
end=$(date +%s.%N)
./target/debug/user >/dev/null
touch src/main.rs
again=$(date +%s.%N)
cargo build --quiet --offline
done=$(date +%s.%N)

awk -v p="$packages" -v a="$start" -v b="$end" -v c="$again" -v d="$done" -v cores="$(nproc)" -v cpu="$cpu" 'BEGIN {
    split(cpu, time)
    printf "packages: %d\nclean build: %.1f s on %d cores (%.1f s of CPU time)\n", p, b - a, cores, time[1] + time[2]
    printf "build after an edit: %.2f s\n", d - c }'
linked=$(cargo tree --quiet --edges normal,no-proc-macro --prefix none)
if grep -q '^syn ' <<<"$linked" || ! grep -q '^tilewright ' <<<"$linked"; then
    echo "FAILED: syn is linked into the user's program"
    exit 1
fi
awk -v a="$start" -v b="$end" -v aim="$SECONDS_AIM" 'BEGIN { if (b - a > aim) print "note: the aim is " aim " s" }'
if [ "$packages" -gt "$PACKAGES" ]; then
    echo "FAILED: at most $PACKAGES packages are allowed"
    exit 1
fi
