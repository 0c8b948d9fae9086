"""Host cost of one small operator called from Python, beside PyTorch in the same process."""

from common import DEVICE, modules, race, table


def cases(module):
    a = module.rand(16, 16, device=DEVICE)
    b = module.rand(16, 16, device=DEVICE)
    m = module.rand(64, 64, device=DEVICE)

    def chain():
        x = a
        for _ in range(10):
            x = module.relu(x + b)
        x.data_ptr()

    def forced():
        (a + b).data_ptr()

    return {
        "a + b": (lambda: a + b, 1),
        "torch.add(a, b)": (lambda: module.add(a, b), 1),
        "a.exp()": (lambda: a.exp(), 1),
        "a.t()": (lambda: a.t(), 1),
        "a.sum()": (lambda: a.sum(), 1),
        "a[2:8]": (lambda: a[2:8], 1),
        "relu(x + b), an operator": (chain, 20),
        "a + b, its address": (forced, 1),
        "m @ m, 64 x 64": (lambda: m @ m, 1),
    }


def main():
    found = modules()
    tessera = found["tessera"]
    rows = {}
    for name in cases(tessera):
        contenders = {}
        for which, module in found.items():
            contenders[which] = (module, cases(module)[name][0])
        contenders["tessera"] += (lambda: tessera.fuse.set_mode("off"),)
        if name.endswith(("operator", "address")):
            step = cases(tessera)[name][0]
            on = (tessera, step, lambda: tessera.fuse.set_mode("on"))
            contenders["tessera deferred"] = on
        per_call = cases(tessera)[name][1]
        times = race(contenders, 2000, rounds=9)
        rows[name] = {k: v * 1e6 / per_call for k, v in times.items()}
    table("small operator", rows, "us")


if __name__ == "__main__":
    main()
