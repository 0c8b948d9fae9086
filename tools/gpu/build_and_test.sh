#!/usr/bin/env bash
# Builds and tests on a GPU machine with nothing but what is installed there: no network, no .venv.
#
#   tools/gpu/build_and_test.sh [--build] [--tests] [--python] [--fuzz N] [--bench] [-k WORD]
#
# Without flags: all of it, with 20000 random programs. Logs and the table go to ${OUT:-build/gpu/out}.
# Environment: TESSERA_PYTHON (python3), TESSERA_JOBS (all cores), FUZZ_SHARDS (8), FUZZ_SEED (1),
# PART_LIMIT (seconds for each part, 1500).
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 1

build=build/gpu
out=${OUT:-$build/out}
python=$("${TESSERA_PYTHON:-python3}" -c 'import sys; print(sys.executable)') || exit 1
jobs=${TESSERA_JOBS:-$(nproc)}
shards=${FUZZ_SHARDS:-8}
limit=${PART_LIMIT:-1500}
do_build="" do_tests="" do_python="" do_bench="" fuzz=0 word=""

[[ $# -gt 0 ]] || set -- --build --tests --python --fuzz 20000 --bench
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) do_build=1 ;;
    --tests) do_tests=1 ;;
    --python) do_python=1 ;;
    --bench) do_bench=1 ;;
    --fuzz) fuzz=${2:?--fuzz needs a number of programs}; shift ;;
    -k) word=${2:?-k needs a word}; shift ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$out"
export PYTHONUNBUFFERED=1 PYTHONPATH=$PWD/$build/python${PYTHONPATH:+:$PYTHONPATH}

rows=() failed=0
row() {  # row PART RESULT SECONDS STATUS
  rows+=("$(printf '%-10s %-6s %6d s  %s' "$1" "$([[ $4 == 0 ]] && echo ok || echo FAILED)" "$3" "$2")")
  [[ $4 == 0 ]] || failed=1
}
skip() { rows+=("$(printf '%-10s %-6s %6s    %s' "$1" "-" "" "skipped: $2")"); }

build_all() {
  local with_python=ON began=$SECONDS status
  if ! "$python" -c 'import nanobind' 2>/dev/null; then
    echo "$python has no nanobind: the Python package is left out"
    with_python=OFF
  fi
  {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTESSERA_PYTHON=$with_python \
      -DPython_EXECUTABLE="$python" -DPython3_EXECUTABLE="$python" &&
      cmake --build "$build" -j "$jobs"
  } >"$out/build.log" 2>&1
  status=$?
  [[ $status == 0 ]] || { grep -iE -A 12 'error|FAILED:' "$out/build.log" || cat "$out/build.log"; } | head -n 120
  row build "$(grep -c warning: "$out/build.log") warnings, $jobs jobs" $((SECONDS - began)) $status
}

cpp_tests() {
  local program=$build/bin/tessera_tests began=$SECONDS status log=$out/tests.log
  [[ -x $program ]] || { skip tests "$program is not there"; return; }
  DEVICE=cuda timeout "$limit" "$program" --gtest_color=no --gtest_filter="*$word*" >"$log" 2>&1
  status=$?
  [[ $status == 0 ]] || grep -vE '^\[( RUN|       OK|-+)' "$log" | tail -n 60
  row tests "$(grep -c '^\[       OK' "$log") passed, $(grep -cE '^\[  FAILED  \] .*\([0-9]+ ms\)' "$log") failed" \
    $((SECONDS - began)) $status
}

python_tests() {
  local began=$SECONDS status log=$out/python.log
  [[ -d tests/python && -d $build/python/tessera ]] || { skip python "no package or no tests"; return; }
  "$python" -c 'import pytest' 2>/dev/null || { skip python "$python has no pytest"; return; }
  DEVICE=cuda timeout "$limit" "$python" -m pytest -q --color=no tests/python ${word:+-k "$word"} >"$log" 2>&1
  status=$?
  [[ $status == 0 ]] || tail -n 80 "$log"
  row python "$(tail -n 1 "$log")" $((SECONDS - began)) $status
}

fuzz_all() {
  local program=$build/bin/fuse_random began=$SECONDS status=0 bad=0 pids=() i
  [[ -x $program ]] || { skip fuzz "$program is not there"; return; }
  for ((i = 0; i < shards; i++)); do
    timeout "$limit" "$program" --programs $(((fuzz + shards - 1) / shards)) --device cuda \
      --seed $((${FUZZ_SEED:-1} + i * 1000003)) >"$out/fuzz.$i.log" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < shards; i++)); do
    wait "${pids[i]}" || { status=1 bad=$((bad + 1)); echo "shard $i:"; tail -n 30 "$out/fuzz.$i.log"; }
  done
  # One file is easier to carry away than one a shard.
  tail -n 40 "$out"/fuzz.*.log >"$out/fuzz.log" && rm -f "$out"/fuzz.[0-9]*.log
  row fuzz "$fuzz programs over $shards processes, $bad of them failed" $((SECONDS - began)) $status
}

benchmarks() {
  local began=$SECONDS status=0 program count=0
  for program in benchmarks/bench*.py; do
    [[ -f $program ]] || continue
    count=$((count + 1))
    DEVICE=cuda timeout "$limit" "$python" "$program" 2>&1 | tee -a "$out/bench.log" || status=1
  done
  [[ $count -gt 0 ]] || { skip bench "no benchmarks/bench*.py"; return; }
  row bench "$count programs, $out/bench.log" $((SECONDS - began)) $status
}

[[ -z $do_build ]] || build_all
[[ -z $do_tests ]] || cpp_tests
[[ -z $do_python ]] || python_tests
[[ $fuzz == 0 ]] || fuzz_all
[[ -z $do_bench ]] || { rm -f "$out/bench.log"; benchmarks; }

{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no GPU"
  printf '%s\n' "${rows[@]}"
} | tee "$out/table.txt"
exit $failed
