"""A replay in words."""

from .stacks import plain


def size_text(size):
    size = float(size)
    for unit in ("B", "KiB", "MiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def _when(replay, state):
    if state == 0:
        return "before the first event"
    seconds = (replay.times[state] - replay.times[0]) / 1e6
    return f"event {state} of {replay.states - 1}, {seconds:.3f} s after the first"


def _holders(replay, state, shown=8):
    lines = []
    held = replay.by_line(state)
    for line, size, count in held[:shown]:
        what = replay.stacks.line_text(line)
        lines.append(f"  {size_text(size):>12}  {count:>5} x  {what}")
    if len(held) > shown:
        rest = held[shown:]
        size, count = sum(h[1] for h in rest), sum(h[2] for h in rest)
        lines.append(f"  {size_text(size):>12}  {count:>5} x  ... from {len(rest)} other lines")
    return lines


def fragmentation(replay):
    """What the segments at the end hold: reserved, in use, waiting, free, its largest piece."""
    reserved = sum(s["total_size"] for s in replay.segments)
    used = sum(b[2] for b in replay.blocks if b[4] == "active_allocated")
    requested = sum(b[3] for b in replay.blocks if b[4] == "active_allocated")
    free = [b[2] for b in replay.blocks if b[4] == "inactive"]
    return {
        "reserved": reserved,
        "used": used,
        "rounding": used - requested,
        "waiting": reserved - used - sum(free),
        "free": sum(free),
        "pieces": len(free),
        "largest": max(free, default=0),
    }


def report(replay, name):
    """Peak and who held it, what is left at the end, what did not fit, and the holes."""
    events = replay.states - 1
    span = (replay.times[-1] - replay.times[0]) / 1e6 if events else 0
    out = [f"{plain(name)}: device {replay.device}, {events} events in {span:.3f} s"]
    if not events:
        out.append(
            "No events: the program did not call torch.cuda.memory._record_memory_history() first, "
            "or with enabled='state'."
        )
    peak = replay.peak_state
    before = replay.allocated[0]
    out.append(
        f"Peak: {size_text(replay.allocated[peak])} allocated, "
        f"{size_text(replay.reserved_at(peak))} reserved ({_when(replay, peak)})"
    )
    if events and before:
        out.append(f"  of it {size_text(before)} was there before the recording began")
    out += _holders(replay, peak)
    last = replay.states - 1
    if last != peak:
        alive = replay.alive(last)
        out.append(
            f"At the end: {size_text(replay.allocated[last])} in {len(alive)} allocations, "
            f"{size_text(replay.reserved_at(last))} reserved"
        )
        out += _holders(replay, last, 5)
    for state, asked, free, stack in replay.ooms[:10]:
        at = f" at {replay.stacks.line_text(replay.stacks.line_of[stack])}" if stack else ""
        out.append(
            f"Out of memory: {size_text(asked)} asked{at} with "
            f"{size_text(replay.allocated[state])} allocated, {size_text(free)} free on the device "
            f"({_when(replay, state)})"
        )
    if len(replay.ooms) > 10:
        out.append(f"... and {len(replay.ooms) - 10} more times out of memory")
    holes = fragmentation(replay)
    if holes["reserved"]:
        share = 100 * holes["free"] / holes["reserved"]
        out.append(
            f"Segments at the end: {size_text(holes['reserved'])} in {len(replay.segments)}, of it "
            f"{size_text(holes['free'])} free ({share:.0f} %) in {holes['pieces']} pieces, the "
            f"largest {size_text(holes['largest'])}; {size_text(holes['rounding'])} lost to "
            "rounding"
            + (f"; {size_text(holes['waiting'])} waits for streams" if holes["waiting"] else "")
        )
    return "\n".join(out)
