"""`tessera top`: what the GPUs of this machine are doing, real ones (NVML) and virtual ones.

tessera top [--once] [--interval SECONDS]
"""

import os
import sys
import time

_WIDE, _MIDDLE, _RIGHT = 41, 24, 22
_WIDTH = _WIDE + _MIDDLE + _RIGHT + 2
_LEVELS = " ▁▂▃▄▅▆▇█"


def gpus():
    """(what is known of each GPU, of the driver): those of NVML, then the virtual ones."""
    from . import _C

    found, driver = _C._gpus("cuda")
    virtual, _ = _C._gpus("virtual")
    if os.environ.get("TESSERA_VIRTUAL_GPU"):
        virtual += _without_monitor(len(virtual))
    elif not found:
        found += _without_monitor(0)  # CUDA may be there, and NVML not
    if not found and not virtual and not driver["why"]:
        driver["why"] = _C._cuda_why_unavailable()
    return found + virtual, driver


def _without_monitor(shown):
    """Devices of which nobody tells more: idle virtual ones; without NVML, all."""
    import tessera as torch

    names = "power_limit_mw memory_busy temperature power_mw fan clock_mhz memory_clock_mhz"
    unknown = dict.fromkeys([*names.split(), "performance_state"], -1)
    for index in range(shown, torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        total, used, bus = properties.total_memory, 0, "host memory"
        if not properties.is_virtual:
            free, total = torch.cuda.mem_get_info(index)
            used, bus = total - free, "NVML is not there"
        yield {
            "name": properties.name,
            "bus": bus,
            "is_virtual": properties.is_virtual,
            "memory_used": used,
            "memory_total": total,
            "busy": 0 if properties.is_virtual else -1,
            "processes": [],
            **unknown,
        }


def _known(value, text):
    return "N/A" if value < 0 else text.format(value)


def _mib(size):
    return "N/A" if size < 0 else f"{size >> 20}MiB"


def process_name(pid, width=36):
    """Its command, first word and end where it is long; as much as the system tells."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return "[not seen from here]"
    words[0] = os.path.basename(words[0])
    text = "".join(c if c.isprintable() else " " for c in " ".join(words)) or "[ended]"
    if len(text) <= width:
        return text
    first = words[0][:12] + " ..."
    return first + text[len(first) - width :]


def _row(wide, middle, right):
    return f"| {wide:<{_WIDE - 2}} | {middle:<{_MIDDLE - 2}} | {right:<{_RIGHT - 2}} |"


def _line(fill, join):
    return f"{join}".join(("", fill * _WIDE, fill * _MIDDLE, fill * _RIGHT, ""))


def _gpu_rows(index, gpu, history):
    power = f"{_known(gpu['power_mw'], '{}') if gpu['power_mw'] < 0 else gpu['power_mw'] // 1000}"
    power += "W" if power != "N/A" else ""
    limit = gpu["power_limit_mw"]
    limit = "N/A" if limit < 0 else f"{limit // 1000}W"
    clocks = [_known(gpu[name], "{}") for name in ("clock_mhz", "memory_clock_mhz")]
    yield _row(f"{index:>3}  {gpu['name'][:33]}", gpu["bus"], f"{clocks[0]:>8} /{clocks[1]:>6} MHz")
    left = f"{_known(gpu['fan'], '{}%'):>4}  {_known(gpu['temperature'], '{}C'):>4}   "
    left += f"{_known(gpu['performance_state'], 'P{}'):<4}{power:>13} / {limit:>6}"
    memory = f"{_mib(gpu['memory_used']):>9} / {_mib(gpu['memory_total']):>9}"
    busy = _known(gpu["busy"], "{}%")
    marks = "".join(_LEVELS[min(8, (value * 8 + 99) // 100)] for value in history[-12:])
    yield _row(left, memory, f"{busy:>6}  {marks:>12}")


def _process_rows(found):
    any_there = False
    for index, gpu in enumerate(found):
        for pid, memory, busy in gpu["processes"]:
            any_there = True
            name = process_name(pid)
            yield f"  {index:>3} {pid:>10}  {name:<38}{_known(busy, '{}%'):>10}{_mib(memory):>15}"
    if not any_there:
        yield "  No running processes found"


def screen(found, driver, histories):
    """The lines of one screen."""
    from .version import __version__

    yield time.strftime("%a %b %e %H:%M:%S %Y")
    yield "+" + "-" * _WIDTH + "+"
    title = f"tessera top {__version__.partition('+')[0]}"
    versions = (
        f"Driver Version: {driver['driver'] or 'N/A'}   CUDA Version: {driver['cuda'] or 'N/A'}"
    )
    yield f"| {title:<24}{versions:>{_WIDTH - 26}} |"
    yield _line("-", "+")
    yield _row("GPU  Name", "Bus-Id", "Clocks   SM / memory")
    yield _row("Fan   Temp   Perf         Pwr:Usage/Cap", "         Memory-Usage", "GPU-Util")
    yield _line("=", "|")
    for index, gpu in enumerate(found):
        yield from _gpu_rows(index, gpu, histories[index])
        yield _line("-", "+")
    yield f"| {'Processes:':<{_WIDTH - 2}} |"
    head = f"  {'GPU':>3} {'PID':>10}  {'Process name':<38}{'GPU-Util':>10}{'GPU Memory':>15}"
    yield f"|{head:<{_WIDTH}}|"
    yield "|" + "=" * _WIDTH + "|"
    for row in _process_rows(found):
        yield f"|{row:<{_WIDTH}}|"
    yield "+" + "-" * _WIDTH + "+"


def _ended(seconds):
    """Waits; whether somebody pressed q."""
    import select

    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and sys.stdin.read(1) in ("q", "Q", "")


def _live(interval, histories):
    """Draws again and again, on a screen of its own, until q or Ctrl-C."""
    import termios
    import tty

    terminal = termios.tcgetattr(sys.stdin)
    print("\x1b[?1049h\x1b[?25l", end="")
    try:
        tty.setcbreak(sys.stdin)
        while True:
            found, driver = gpus()
            for index, gpu in enumerate(found):
                histories.setdefault(index, []).append(max(gpu["busy"], 0))
            lines = [*screen(found, driver, histories), "q ends"]
            print("\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[J", end="", flush=True)
            if _ended(interval):
                return
    except KeyboardInterrupt:
        pass
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, terminal)
        print("\x1b[?25h\x1b[?1049l", end="", flush=True)


def main(args):
    import argparse

    parser = argparse.ArgumentParser(prog="tessera top", description=__doc__.splitlines()[0])
    parser.add_argument("--once", action="store_true", help="print one screen")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between screens")
    options = parser.parse_args(args)
    found, driver = gpus()
    if not found:
        from . import _C

        print("No GPU is there: " + (_C._cuda_why_unavailable() or driver["why"]))
        print("TESSERA_VIRTUAL_GPU=1x2GiB makes one of host memory; `tessera doctor` says more.")
        return 1
    histories = {index: [max(gpu["busy"], 0)] for index, gpu in enumerate(found)}
    if options.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("\n".join(screen(found, driver, histories)))
    else:
        _live(options.interval, histories)
    return 0
