"""Tensors used from several threads, and Python going on meanwhile; what could hang is in
test_thread_programs.py."""

import threading

import tessera as torch
import tessera.nn.functional as F


def test_many_threads(device):
    failures = []

    def work(seed):
        try:
            x = torch.full((50, 50), float(seed), device=device)
            for _ in range(50):
                assert torch.rand(300, device=device).max().item() <= 1
                y = (x * 2 + 1).sum()
                assert y.item() == 2500 * (2 * seed + 1)
                assert torch.is_grad_enabled()
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    with torch.no_grad():  # of this thread alone
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
    assert not failures


def test_objects_may_end_in_another_thread():
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
    x.grad.note = "kept"
    box = [x]
    del x

    def end():
        box.pop()

    thread = threading.Thread(target=end)
    thread.start()
    thread.join(60)
    assert box == []


def test_a_convolution_that_one_thread_made_runs_on_another():
    # Its scratch memory must not be that of the thread that made it.
    def gradient():
        w = torch.ones(40, 12, 3, 3, requires_grad=True)
        F.conv2d(torch.ones(2, 24, 7, 7), w, padding=2, dilation=2, groups=2).sum().backward()
        return w.grad

    results = [gradient()]
    thread = threading.Thread(target=lambda: results.append(gradient()))
    thread.start()
    thread.join()
    assert torch.equal(results[0], results[1])
