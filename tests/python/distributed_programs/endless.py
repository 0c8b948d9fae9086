"""Collectives without end: somebody dies, and each survivor prints the error it got."""

import datetime
import os
import random
import sys

import tessera as torch
import tessera.distributed as dist

rank = int(os.environ["RANK"])
torch.set_default_device("cuda" if os.environ.get("TESSERA_VIRTUAL_GPU") else "cpu")
try:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=float(sys.argv[1])))
    size = dist.get_world_size()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])] if size == 4 else []
except dist.DistError as error:
    sys.exit(f"DistError: {error}")
choices = random.Random(int(sys.argv[2]))  # the same on all ranks
print("started", flush=True)
try:
    while True:
        n = choices.choice([1, 1000, 300_000])
        t = torch.ones(n)
        what = choices.randrange(9)
        if what == 0:
            dist.all_reduce(t)
        elif what == 1:
            dist.broadcast(t, src=choices.randrange(size))
        elif what == 2:
            dist.all_gather([torch.empty(n) for _ in range(size)], t)
        elif what == 3:
            dist.reduce_scatter_tensor(torch.empty(n), torch.ones(n * size))
        elif what == 4:
            dist.all_to_all_single(torch.empty(n * size), torch.ones(n * size))
        elif what == 5:
            dist.barrier()
        elif what == 6:
            works = [dist.all_reduce(torch.ones(n), async_op=True) for _ in range(3)]
            for work in works:
                work.wait()
        elif what == 7:
            work = dist.isend(t, (rank + 1) % size)
            dist.recv(torch.empty(n), (rank - 1) % size)
            work.wait()
        else:
            for pair in pairs:
                if dist.get_rank(pair) >= 0:
                    dist.all_reduce(t, group=pair)
except dist.DistError as error:
    print("error:", str(error).replace("\n", " | "), flush=True)
    sys.exit(3)
