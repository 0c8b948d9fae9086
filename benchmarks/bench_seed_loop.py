"""The article's loop: fourteen pointwise operators, of which one result is kept.

Tessera with deferral off and on, beside PyTorch eager and, on a GPU, compiled; same process."""

from common import DEVICE, modules, race, table

SIZES = [("float16", 512), ("float16", 2048), ("float16", 4096), ("float32", 2048)]


def loop(module, dtype, n):
    a, b, c = (module.rand(n, n, device=DEVICE, dtype=getattr(module, dtype)) for _ in range(3))

    def step(a=a, b=b, c=c):
        y0 = a + b
        y1 = y0 + c
        y2 = y1 * a
        y3 = y2 - b
        y4 = y2 + y3
        y5 = 0.33 * a + 0.66 * b + c * 0.9
        y = y1 + y2
        y = y2 + y3
        y = y3 + y4
        y = y4 + y5
        return y

    return step


def forced(step):
    """Asks for the address: deferred work is done and counted."""

    def run():
        step().data_ptr()

    return run


def main():
    found = modules()
    tessera = found["tessera"]
    rows = {}
    for dtype, n in SIZES:
        contenders = {}
        if "torch" in found:
            torch = found["torch"]
            contenders["torch"] = (torch, forced(loop(torch, dtype, n)))
            if DEVICE == "cuda":
                compiled = torch.compile(loop(torch, dtype, n))
                contenders["torch.compile"] = (torch, forced(compiled))
        step = forced(loop(tessera, dtype, n))
        contenders["tessera"] = (tessera, step, lambda: tessera.fuse.set_mode("off"))
        on = (tessera, step, lambda: tessera.fuse.set_mode("on"))
        contenders["tessera deferred"] = on
        inner = {512: 200, 2048: 100, 4096: 50}[n] if DEVICE == "cuda" else {512: 20}.get(n, 2)
        times = race(contenders, inner)
        rows[f"{dtype} {n}"] = {k: v * 1e6 for k, v in times.items()}
        tessera.fuse.set_mode("off")
    table("seed loop", rows, "us an iteration")


if __name__ == "__main__":
    main()
