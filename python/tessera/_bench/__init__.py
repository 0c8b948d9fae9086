"""`tessera bench`: measurements of this machine, as a table and a plot.

tessera bench transfer      how fast data comes to the GPU and back, pinned and pageable
tessera bench amp           training with and without mixed precision: time and memory
tessera bench cpu-vs-gpu    at which size the GPU wins

--quick      small sizes, a few seconds
-o FILE.svg  where the plot goes (bench-NAME.svg); -o - for none
"""

import argparse
import sys

_BENCHES = {"transfer": "transfer", "amp": "amp", "cpu-vs-gpu": "cpu_vs_gpu"}


def main(args):
    parser = argparse.ArgumentParser(
        prog="tessera bench",
        usage="tessera bench {transfer,amp,cpu-vs-gpu} [--quick] [-o FILE.svg]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=_BENCHES)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", "--output")
    options = parser.parse_args(args)
    import importlib

    import tessera as torch

    bench = importlib.import_module(f"{__name__}.{_BENCHES[options.name]}")
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"tessera bench {options.name} on {name}, {torch.get_num_threads()} CPU threads\n")
    plots = bench.run(options.quick)
    if plots is None:
        return 1
    from .plot import svg, terminal

    for plot in plots:
        print("\n" + terminal(plot))
    path = options.output or f"bench-{options.name}.svg"
    if path != "-":
        with open(path, "w") as file:
            file.write(svg(plots))
        print(f"\nplot: {path}")
    sys.stdout.flush()
    return 0


def no_gpu(what):
    """Says what cannot be measured, and why."""
    import tessera as torch

    print(f"{what} needs a GPU: {torch._C._cuda_why_unavailable()}")
    print("TESSERA_VIRTUAL_GPU=1x2GiB makes one of host memory, to see how this looks.")


def best_of(timers, seconds, rounds=3):
    """The shortest median of each: they take turns, so that what disturbs the machine for a while
    disturbs all of them."""
    medians = [[] for _ in timers]
    for _ in range(rounds):
        for timer, found in zip(timers, medians):
            found.append(timer.blocked_autorange(min_run_time=seconds / rounds).median)
    return [min(found) for found in medians]
