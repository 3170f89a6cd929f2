#!/usr/bin/env bash
# Builds the programs the pipeline tests run, from the Go module proxy, into ~/.cache/dsh-checkpoint-otel (or DSH_CHECKPOINT_CACHE), where a fresh clone finds them again:
#   the collector with exactly the components that our configuration files name (manifest.yaml),
#   a current Prometheus for its OTLP intake (prometheus/go.mod).
#
#   test/collector/build.sh           build what is missing, print the paths
#   test/collector/build.sh --print   print the paths without building
#
# A path holds the hash of what it was built from, so a change builds anew and no change builds nothing.
# Needs Go 1.26. Both take about a minute each on two cores, and nothing when cached.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${DSH_CHECKPOINT_CACHE:-$HOME/.cache/dsh-checkpoint-otel}/pipeline
builder=go.opentelemetry.io/collector/cmd/builder@v0.165.0
limit=900

hash_of() { (echo "$builder"; cat "$@") | sha256sum | cut -c1-16; }
collector=$cache/otelcol-checkpoint-$(hash_of "$here/manifest.yaml")
prometheus=$cache/prometheus-$(hash_of "$here/prometheus/go.mod" "$here/prometheus/go.sum")

build_collector() {
  sed "s#^dist:#&\n  output_path: $work#" "$here/manifest.yaml" >"$work/manifest.yaml"
  nice timeout "$limit" go run "$builder" --config "$work/manifest.yaml" --ldflags='-s -w'
  mv "$work/otelcol-checkpoint" "$collector"
}

build_prometheus() {
  # Without service discovery of clouds: a tenth of the dependencies to compile.
  (cd "$here/prometheus" && nice timeout "$limit" go build -mod=readonly -tags remove_all_sd -trimpath \
    -ldflags='-s -w' -o "$work/prometheus" github.com/prometheus/prometheus/cmd/prometheus)
  mv "$work/prometheus" "$prometheus"
}

if [ "${1:-}" != --print ]; then
  export PATH=$PATH:/usr/local/go/bin CGO_ENABLED=0 GOTOOLCHAIN=local
  export GOFLAGS="${GOFLAGS:--buildvcs=false} -p=$(nproc)" GOMAXPROCS="${GOMAXPROCS:-2}"
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  work=$(mktemp -d "$cache/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  [ -x "$collector" ] || build_collector >&2
  [ -x "$prometheus" ] || build_prometheus >&2
fi
echo "collector=$collector"
echo "prometheus=$prometheus"
