#!/usr/bin/env bash
# What docs/guide/seeing.md and benchmarking.md show, made on this machine's GPU: screens of `tessera doctor`,
# `top` and `run --report`, and the tables and plots of `tessera bench`. Into $OUT, or build/gpu/out.
#
#   tools/gpu/screens.sh [--quick]     after build_and_test.sh --build
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
out=${OUT:-build/gpu/out}
python=${TESSERA_PYTHON:-python3}
export PYTHONPATH=$PWD/build/gpu/python${PYTHONPATH:+:$PYTHONPATH}
mkdir -p "$out"
tessera() { "$python" -m tessera "$@"; }

tessera doctor >"$out/doctor.txt" 2>&1
TESSERA_FUSE=0 "$python" -m tessera run tests/seeds/frame.py 000_05_crunch.py --forever >/dev/null 2>&1 &
worker=$!
sleep 5
tessera top --once >"$out/top.txt" 2>&1
kill $worker
tessera run --report tests/seeds/blocks/002_03_train_cnn.py >"$out/report.txt" 2>&1
tessera run --report tests/seeds/blocks/003_01_cpu_only.py >"$out/report_cpu_only.txt" 2>&1
for name in transfer amp cpu-vs-gpu; do
  tessera bench $name "$@" -o "$out/bench-$name.svg" >"$out/bench-$name.txt" 2>&1
done
tail -n 40 "$out"/{doctor,top,report,report_cpu_only,bench-transfer,bench-amp,bench-cpu-vs-gpu}.txt
