#!/usr/bin/env bash
# Builds and tests on a GPU machine with nothing but what is installed there: no network, no .venv.
#
#   tools/gpu/build_and_test.sh [--build] [--pack] [--tests] [--python] [--conformance] [--seeds]
#                               [--memcheck] [--sanitize TOOL] [--canaries] [--layouts N] [--beside N]
#                               [--fuzz N] [--bench] [-k WORD]
#
# Without flags: all of it, with 2000 random layouts, 2000 random programs beside PyTorch and 20000
# fused and not. Logs and the table go
# to ${OUT:-build/gpu/out}.
# Environment: TESSERA_PYTHON (python3), TESSERA_JOBS (all cores), FUZZ_SHARDS (8), FUZZ_SEED (1),
# PART_LIMIT (seconds for each part, 1500), SHARDS (processes of the tests, 8).
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 1

build=build/gpu
out=${OUT:-$build/out}
python=$("${TESSERA_PYTHON:-python3}" -c 'import sys; print(sys.executable)') || exit 1
jobs=${TESSERA_JOBS:-$(nproc)}
shards=${FUZZ_SHARDS:-8}
processes=${SHARDS:-8}
limit=${PART_LIMIT:-1500}
do_build="" do_pack="" do_tests="" do_python="" do_bench="" do_conformance="" do_seeds="" tools="" do_canaries="" layouts=0 beside=0 fuzz=0 word=""

[[ $# -gt 0 ]] || set -- --build --pack --tests --python --conformance --seeds --memcheck --canaries --layouts 2000 --beside 2000 --fuzz 20000 --bench
while [[ $# -gt 0 ]]; do
  case $1 in
    --build) do_build=1 ;;
    --pack) do_pack=1 ;;
    --tests) do_tests=1 ;;
    --python) do_python=1 ;;
    --bench) do_bench=1 ;;
    --conformance) do_conformance=1 ;;
    --seeds) do_seeds=1 ;;
    --memcheck) tools+=" memcheck" ;;
    --sanitize) tools+=" ${2:?--sanitize needs memcheck, racecheck, initcheck or synccheck}"; shift ;;
    --canaries) do_canaries=1 ;;
    --layouts) layouts=${2:?--layouts needs a number of cases}; shift ;;
    --beside) beside=${2:?--beside needs a number of programs}; shift ;;
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

# Kernels compiled beforehand, for the GPU that is here.
make_pack() {
  local began=$SECONDS status arch
  arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
  "$python" tools/pack/make.py "$build" --arch "${arch:-90}" --jobs "$jobs" >"$out/pack.log" 2>&1
  status=$?
  [[ $status == 0 ]] || tail -n 30 "$out/pack.log"
  row pack "$(tail -n 1 "$out/pack.log")" $((SECONDS - began)) $status
}

cpp_tests() {
  local program=$build/bin/tessera_tests began=$SECONDS status log=$out/tests.log
  [[ -x $program ]] || { skip tests "$program is not there"; return; }
  # Side by side: most of the time goes into compiling kernels, one at a time in a process.
  local part parts=() n=$processes
  for ((part = 0; part < n; part++)); do
    GTEST_TOTAL_SHARDS=$n GTEST_SHARD_INDEX=$part DEVICE=cuda timeout "$limit" "$program" \
      --gtest_color=no --gtest_filter="*$word*" >"$log.$part" 2>&1 &
    parts+=($!)
  done
  status=0
  for part in "${parts[@]}"; do wait "$part" || status=$?; done
  cat "$log".[0-9]* >"$log"
  rm -f "$log".[0-9]*
  [[ $status == 0 ]] || grep -vE '^\[( RUN|       OK|-+)' "$log" | tail -n 60
  row tests "$(grep -c '^\[       OK' "$log") passed, $(grep -cE '^\[  FAILED  \] .*\([0-9]+ ms\)' "$log") failed" \
    $((SECONDS - began)) $status
}

# Runs the tests of some files over several processes: in_shards LOG FILES... -- COMMAND...
in_shards() {
  local log=$1 files=() pids=() i status=0
  shift
  while [[ $1 != -- ]]; do files+=("$1"); shift; done
  shift
  for ((i = 1; i <= processes; i++)); do
    TEST_PART=$i/$processes DEVICE=cuda timeout "$limit" "$@" "${files[@]}" >"$log.$i" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || { code=$?; [[ $code == 5 ]] || status=1; }  # 5: nothing was selected
  done
  cat "$log".[0-9]* >"$log" && rm -f "$log".[0-9]*
  return $status
}
counts() {  # of pytest's last lines in a log
  awk '/(passed|failed|skipped).* in [0-9.]+s/ {
    for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i; if ($(i+1) ~ /^failed/) f += $i }
  } END { printf "%d passed, %d failed", p, f }' "$1"
}

python_tests() {
  local began=$SECONDS status log=$out/python.log
  [[ -d tests/python && -d $build/python/tessera ]] || { skip python "no package or no tests"; return; }
  "$python" -c 'import pytest' 2>/dev/null || { skip python "$python has no pytest"; return; }
  in_shards "$log" tests/python/test_*.py -- "$python" -m pytest -q --color=no -p no:cacheprovider \
    ${word:+-k "$word"}
  status=$?
  [[ $status == 0 ]] || grep -hE '^(FAILED|ERROR|Fatal)' "$log" | head -n 80
  row python "$(counts "$log")" $((SECONDS - began)) $status
}

conformance() {
  local began=$SECONDS status log=$out/conformance.log
  [[ -d $build/python/tessera ]] || { skip conform "no package"; return; }
  timeout "$limit" "$python" tests/conformance/check.py tests/conformance/cases.zip --module tessera \
    --device cuda -j "$processes" --show 1000 >"$log" 2>&1
  status=$?
  tail -n 3 "$log"
  row conform "$(tail -n 1 "$log")" $((SECONDS - began)) $status
}

seeds() {
  local began=$SECONDS status log=$out/seeds.log
  [[ -d $build/python/tessera ]] || { skip seeds "no package"; return; }
  timeout "$limit" "$python" tools/gpu/seeds_table.py --out "$out/seeds.json" >"$log" 2>&1
  status=$?
  [[ $status == 0 ]] || tail -n 40 "$log"
  row seeds "$(grep -c "^cuda " "$log") blocks, $(grep -c "^cuda .* fails  " "$log") failed" $((SECONDS - began)) $status
}

# One tool of compute-sanitizer. Every tensor is an allocation of its own, so that an access beyond it shows.
sanitize() {
  local kind=$1 began=$SECONDS status log=$out/$1.log tool
  tool=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [[ -x $tool ]] || { skip "$kind" "no compute-sanitizer"; return; }
  # Not those that provoke an illegal access, that read what a child prints, or that need no GPU.
  local files=() file
  for file in tests/python/test_cuda_*.py; do
    case $file in *_faults.py | *_devices.py | *_pack.py) ;; *) files+=("$file") ;; esac
  done
  # racecheck has much to say of the libraries' kernels, and synccheck ends them: a name in C++ is
  # theirs, our own are plain. initcheck has to see them: what they write is read by ours.
  local ours=()
  [[ $kind == memcheck || $kind == initcheck ]] || ours=(--kernel-name-exclude 'regex=^_Z'
    --kernel-name-exclude 'regex=^(cudnn|cutlass|nvjet|sm[0-9]+_)')
  PYTORCH_NO_CUDA_MEMORY_CACHING=1 in_shards "$log" "${files[@]}" -- "$tool" --tool "$kind" "${ours[@]}" \
    --report-api-errors no --error-exitcode 9 "$python" -m pytest -q --color=no -p no:cacheprovider ${word:+-k "$word"}
  status=$?
  grep -hE '^========= (Invalid|Uninitialized|Error: Race|Warning: Race|Barrier|Program hit|ERROR SUMMARY|RACECHECK SUMMARY)' "$log" |
    sort | uniq -c | sort -rn | head -n 12
  row "$kind" "$(counts "$log"), $(grep -cE '^========= (Invalid|Uninitialized|Error: Race|Barrier)' "$log") findings" $((SECONDS - began)) $status
}

# spread NAME CASES COMMAND...: as many processes of it as tests have, each with its share of the cases
# and a seed as further arguments. Its last line begins with how many ran and tells how many differ.
spread() {
  local name=$1 cases=$2 began=$SECONDS status=0 log=$out/$1.log pids=() i
  shift 2
  for ((i = 0; i < processes; i++)); do
    timeout "$limit" "$@" $((cases / processes + 1)) $((${FUZZ_SEED:-1} + 100000 * i)) >"$log.$i" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || status=1; done
  row "$name" "$(tail -qn 1 "$log".[0-9]* | awk '{n += $1; d += $(NF - 1)} END {printf "%d cases, %d differ", n, d}')" \
    $((SECONDS - began)) $status
  cat "$log".[0-9]* >"$log" && rm -f "$log".[0-9]*
  [[ $status == 0 ]] || tail -n 60 "$log"
}

# Random shapes and strides against the CPU.
random_layouts() { spread layouts "$layouts" "$python" tests/cuda/layouts.py; }

# Random programs, statement by statement, on Tessera and on PyTorch.
beside_pytorch() {
  "$python" -c 'import torch' 2>/dev/null || { skip beside "$python has no PyTorch"; return; }
  DEVICE=cuda spread beside "$beside" "$python" tests/fuse/random_programs/beside_pytorch.py "$build/bin/fuse_random"
}

# Groups of two or more are compiled and waited for; single operators, which they are compared with,
# are interpreted: thousands of kernels less.
fuzz_all() {
  local program=$build/bin/fuse_random began=$SECONDS status log=$out/fuzz.log
  [[ -x $program ]] || { skip fuzz "$program is not there"; return; }
  TESSERA_INTERPRET=${TESSERA_INTERPRET:-single} TESSERA_KERNEL_BUDGET=1000000000 timeout "$limit" "$program" \
    --programs "$fuzz" --device cuda --shards "$shards" --seed "${FUZZ_SEED:-1}" --reports 20 --nan-bits \
    --seconds $((limit - 10)) >"$log" 2>&1
  status=$?
  local done_of
  done_of=$(sed -n 's/^\([0-9]*\) programs with fused groups.*/\1/p' "$log")
  [[ ${done_of:-0} -ge $fuzz ]] || status=1  # the time was over first
  [[ $status == 0 ]] || tail -n 60 "$log"
  row fuzz "${done_of:-0} of $fuzz programs with fused groups, $(grep -h ' disagreements' "$log")" $((SECONDS - began)) $status
}

# Device memory of many threads and streams, told apart by what was written into it.
canaries() {
  local program=$build/bin/stream_canaries began=$SECONDS status log=$out/canaries.log
  [[ -x $program ]] || { skip canaries "$program is not there"; return; }
  timeout "$limit" "$program" >"$log" 2>&1
  status=$?
  [[ $status == 0 ]] || tail -n 20 "$log"
  row canaries "$(tail -n 1 "$log")" $((SECONDS - began)) $status
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
[[ -z $do_pack ]] || make_pack
[[ -z $do_tests ]] || cpp_tests
[[ -z $do_python ]] || python_tests
[[ -z $do_conformance ]] || conformance
[[ -z $do_seeds ]] || seeds
for tool in $tools; do sanitize "$tool"; done
[[ -z $do_canaries ]] || canaries
[[ $layouts == 0 ]] || random_layouts
[[ $beside == 0 ]] || beside_pytorch
[[ $fuzz == 0 ]] || fuzz_all
[[ -z $do_bench ]] || { rm -f "$out/bench.log"; benchmarks; }

{
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no GPU"
  printf '%s\n' "${rows[@]}"
} | tee "$out/table.txt"
exit $failed
