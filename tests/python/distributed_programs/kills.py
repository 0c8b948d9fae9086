"""kills.py N [SEED [early]]: N times, four ranks call collectives, one of them is killed at a
random moment, and the others have to end with an error that names it. Prints what was wrong, and a
verdict. early: before all of them have met; the others have to end, with an error."""

import os
import random
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 20  # seconds: the ranks' own deadline is half of it
NAMES = "all_reduce|broadcast|all_gather|reduce_scatter|all_to_all|barrier|send|recv"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def one(random_numbers, early, size=4):
    port, seed = free_port(), random_numbers.randrange(1 << 30)
    victim = random_numbers.randrange(size)
    ranks = []
    for rank in range(size):
        env = os.environ | {
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TESSERA_DIST_SECRET": "a secret of this test",
        }
        command = [sys.executable, HERE / "endless.py", str(LIMIT / 2), str(seed)]
        ranks.append(
            subprocess.Popen(
                command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
    try:
        for process in () if early else ranks:
            assert process.stdout.readline() == "started\n", process.communicate()[0]
        time.sleep(random_numbers.uniform(0, 0.6 if early else 0.3))
        ranks[victim].kill()
        began, slowest = time.monotonic(), 0.0
        for rank, process in enumerate(ranks):
            if rank == victim:
                process.wait()
                continue
            out = process.communicate(timeout=LIMIT)[0]
            slowest = max(slowest, time.monotonic() - began)
            good = (early and process.returncode and "DistError" in out) or re.search(
                rf"\[rank {rank}\] ({NAMES}).*sequence number \d+ .*rank {victim} died", out
            )
            if not good:
                return f"rank {rank} after the death of {victim}: {process.returncode}: {out}", 0
        return None, slowest
    except subprocess.TimeoutExpired:
        return f"rank {rank} hangs after the death of {victim}", LIMIT
    finally:
        for process in ranks:
            process.kill()
            process.communicate()


def main():
    count = int(sys.argv[1])
    random_numbers = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    wrong, times = 0, []
    for number in range(count):
        problem, seconds = one(random_numbers, "early" in sys.argv)
        times.append(seconds)
        if problem:
            wrong += 1
            print(f"{number}: {problem}", flush=True)
    print(
        f"{count} kills, {wrong} wrong; survivors ended after {sorted(times)[count // 2]:.2f} s "
        f"(median), {max(times):.2f} s at most"
    )
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
