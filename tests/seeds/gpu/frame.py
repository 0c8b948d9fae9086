"""Runs a piece of a tutorial with the names it takes for granted: frame.py PROGRAM.

What stands before a piece (BEFORE) makes those names; what stands after it (AFTER) uses what it
defines and prints what it left. The piece itself runs as it was written, paragraph by paragraph:
one that fails prints its error, and the next one runs.
"""

import sys
import traceback
from pathlib import Path

BEFORE = {
    "001_01_setup": "",
    "004_02_create_gpu_tensors": "import torch",
    "004_04_async_transfer": """
import torch
from torch.utils.data import DataLoader, TensorDataset
cpu_tensor = torch.randn(1000, 1000)
dataset = TensorDataset(torch.arange(256.).view(128, 2), torch.arange(128))
""",
    "004_06_free_memory": """
import torch
from torch import nn
large_tensor = torch.zeros(1000, 1000, device='cuda')
model = nn.Linear(8, 2).cuda()
inputs = torch.ones(4, 8, device='cuda')
""",
    "004_07_device_agnostic": """
import torch
from torch import nn
class Model(nn.Linear):
    def __init__(self):
        super().__init__(100, 10)
data = torch.randn(32, 100)
""",
    "004_08_minimize_transfers": """
import torch
from torch import nn
model, criterion, target = nn.Linear(8, 2).cuda(), nn.MSELoss(), torch.zeros(4, 2)
class Loader:
    '''Tensors the first time, pairs of them the second time.'''
    def __init__(self):
        self.passes = [[torch.ones(4, 8)] * 3, [(torch.ones(4, 8), torch.zeros(4, 2))] * 3]
    def __iter__(self):
        return iter(self.passes.pop(0))
loader = Loader()
""",
    "004_09_pitfall_device": """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(100, 10), nn.ReLU())
    def forward(self, x):
        return self.layers(x)
""",
    "004_10_debugging": "import torch",
    "004_11_exercise1": "import torch\nfrom torch import nn\ntorch.set_default_device('cuda')",
    "004_12_challenge": """
import torch
from torch import nn
from torch.utils.debug import GPUMemoryTracker
class LargeModel(nn.Linear):
    def __init__(self):
        super().__init__(1000, 1000, bias=False)
large_input = torch.randn(500, 1000, device='cuda')
""",
}
AFTER = {
    "000_01_check": "print(torch.cuda.get_device_name(torch.cuda.current_device()))",
    "001_01_setup": """
display_cuda_info()
switch_gpu(1)
print(torch.cuda.current_device(), torch.zeros(1, device='cuda').device)
print(next(move_model_to_gpu(model, 1).parameters()).device)
switch_gpu(2)
""",
    "004_03_moving_tensors": """
print(output.shape, output.device, type(numpy_array).__name__)
print((numpy_array == cpu_tensor.numpy()).all())
output = model(cpu_tensor)
""",
    "004_04_async_transfer": """
print(cpu_tensor.is_pinned(), pinned_tensor.is_pinned(), gpu_tensor.device)
print(torch.equal(gpu_tensor.cpu(), cpu_tensor))
for x, y in train_loader:
    x, y = x.to('cuda', non_blocking=True), y.to('cuda', non_blocking=True)
    print(x.sum().item(), y.sum().item(), x.device)
print(next(iter(train_loader))[0].is_pinned())
""",
    "004_06_free_memory": """
print(torch.cuda.memory_allocated() < 4_000_000, predictions.requires_grad)
large = LargeModel()
large.block1, large.block2 = nn.Linear(8, 8).cuda(), nn.Linear(8, 2).cuda()
x = inputs.clone().requires_grad_()
large(x).sum().backward()
print(x.grad.shape, x.grad.device)
""",
    "004_07_device_agnostic": "print(model(data).device, new_tensor.device, like_tensor.device)",
    "004_08_minimize_transfers": "print(loss.device, batch.device, target.device)",
    "004_09_pitfall_device": "print(output.shape, output.device)",
    "004_10_debugging": """
net = torch.nn.Linear(3, 2)
print_tensor_info('weight', net.weight)
verify_model_device(net, 'cpu')
net.cuda()
print_tensor_info('weight', net.weight)
verify_model_device(net, 'cuda')
log_memory()
net.bias.data = net.bias.data.cpu()
verify_model_device(net, 'cuda')
""",
    "004_11_exercise1": "print(output.device)",
    "004_12_challenge": "print(tracker)",
}


def run(code, names, title):
    try:
        exec(compile(code, title, "exec"), names)
    except Exception as error:
        print(traceback.format_exception_only(error)[-1].strip())


def main():
    path = Path(sys.argv[1])
    names = {"__name__": "__main__"}
    exec(BEFORE.get(path.stem, ""), names)
    text = path.read_text()
    # A paragraph begins with a comment at the margin.
    pieces = text.split("\n\n#")
    for i, piece in enumerate(pieces):
        run(piece if i == 0 else "#" + piece, names, str(path))
    run(AFTER.get(path.stem, ""), names, "<after>")


if __name__ == "__main__":
    main()
