"""What a block takes for granted (BEFORE), and what then uses what it left (AFTER).

Both are ordinary code around a block that is run as it was written. `here` is the GPU, where there
is one, and else the CPU.
"""

COMMON = """
import torch
from torch import nn
here = 'cuda' if torch.cuda.is_available() else 'cpu'
"""
MODEL = """
class MyModel(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 4))
"""
LOADER = """
from torch.utils.data import DataLoader, TensorDataset
dataset = TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,)))
criterion = nn.CrossEntropyLoss()
"""
REGRESSION = """
model, criterion = nn.Linear(8, 2).to(here), nn.MSELoss()
loader = [torch.randn(4, 8).to(here) for _ in range(6)]
target = torch.randn(4, 2).to(here)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

BEFORE = {
    "001_03_dumb_model": "<001_02_setup>",
    "004_01_simt_concept": COMMON + "hidden_layer = torch.randn(1024, 512, device=here)",
    "004_03_create_gpu_tensors": "import torch",
    "004_05_async_transfer": """
import torch
from torch.utils.data import DataLoader, TensorDataset
cpu_tensor = torch.randn(1000, 1000)
dataset = TensorDataset(torch.arange(256.).view(128, 2), torch.arange(128))
""",
    "004_08_free_memory": COMMON
    + """
large_tensor = torch.zeros(1000, 1000, device=here)
model = nn.Linear(8, 2).to(here)
inputs = torch.ones(4, 8, device=here)
""",
    "004_09_mixed_precision": COMMON
    + MODEL
    + LOADER
    + """
num_epochs = 8
train_loader = DataLoader(dataset, batch_size=16)
""",
    "004_10_data_parallel": COMMON + MODEL + LOADER + "model = MyModel()",
    "004_11_distributed": COMMON
    + MODEL
    + LOADER
    + """
import os
os.environ.update(RANK='0', LOCAL_RANK='0', WORLD_SIZE='1', MASTER_ADDR='127.0.0.1')
os.environ.setdefault('MASTER_PORT', str(20000 + os.getpid() % 20000))
""",
    "004_12_torch_profiler": COMMON
    + LOADER
    + """
class MyModel(nn.Sequential):
    def __init__(self):
        super().__init__(nn.AvgPool2d(28), nn.Flatten(), nn.Linear(192, 4))
dataset = TensorDataset(torch.randn(20, 3, 224, 224), torch.randint(0, 4, (20,)))
loader = DataLoader(dataset, batch_size=2)
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
""",
    "004_13_memory_profiling": COMMON
    + MODEL
    + "loader = [torch.randn(16, 3, 8, 8) for _ in range(3)]",
    "004_14_device_agnostic": COMMON
    + """
class Model(nn.Linear):
    def __init__(self):
        super().__init__(100, 10)
data = torch.randn(32, 100)
""",
    "004_15_minimize_transfers": COMMON
    + """
model, criterion, target = nn.Linear(8, 2).to(here), nn.MSELoss(), torch.zeros(4, 2)
class Loader:
    '''Tensors the first time, pairs of them the second time.'''
    def __init__(self):
        self.passes = [[torch.ones(4, 8)] * 3, [(torch.ones(4, 8), torch.zeros(4, 2))] * 3]
    def __iter__(self):
        return iter(self.passes.pop(0))
loader = Loader()
""",
    "004_16_no_grad": COMMON
    + """
model, criterion = nn.Linear(8, 2).to(here), nn.MSELoss()
x, y, test_data = (torch.randn(4, n).to(here) for n in (8, 2, 8))
""",
    "004_17_benchmark": "import torch",
    "004_18_pitfall_device": COMMON
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(100, 10), nn.ReLU())
    def forward(self, x):
        return self.layers(x)
""",
    "004_19_pitfall_memory": COMMON + REGRESSION,
    "004_20_pitfall_gradients": COMMON + REGRESSION,
    "004_21_debugging": "import torch",
    "004_22_exercise1": COMMON + "torch.set_default_device(here)",
    "004_23_challenge": COMMON
    + """
from torch.utils.debug import GPUMemoryTracker
class LargeModel(nn.Linear):
    def __init__(self):
        super().__init__(1000, 1000, bias=False)
large_input = torch.randn(500, 1000, device=here)
""",
}

AFTER = {
    "000_04_check": "print(torch.cuda.get_device_name(torch.cuda.current_device()))",
    "001_02_setup": """
display_cuda_info()
last = torch.cuda.device_count() - 1
switch_gpu(last)
print(torch.cuda.current_device() == last, torch.zeros(1, device='cuda').device.index == last)
model = move_model_to_gpu(torch.nn.Linear(2, 2), last)
print(next(model.parameters()).device.index == last)
switch_gpu(last + 1)
""",
    "001_03_dumb_model": "print(next(model.parameters()).device)",
    "004_01_simt_concept": "print(activations.shape, activations.min().item() == 0)",
    "004_04_moving_tensors": """
print(output.shape, output.device, type(numpy_array).__name__)
print((numpy_array == cpu_tensor.numpy()).all())
if torch.cuda.is_available():
    output = model(cpu_tensor)
""",
    "004_05_async_transfer": """
print(cpu_tensor.is_pinned(), pinned_tensor.is_pinned(), gpu_tensor.device)
print(torch.equal(gpu_tensor.cpu(), cpu_tensor))
for x, y in train_loader:
    x, y = x.to('cuda', non_blocking=True), y.to('cuda', non_blocking=True)
    print(x.sum().item(), y.sum().item(), x.device)
print(next(iter(train_loader))[0].is_pinned())
""",
    "004_08_free_memory": """
print(torch.cuda.memory_allocated() < 4_000_000, predictions.requires_grad)
large = LargeModel()
large.block1, large.block2 = nn.Linear(8, 8).to(here), nn.Linear(8, 2).to(here)
x = inputs.clone().requires_grad_()
large(x).sum().backward()
print(x.grad.shape, x.grad.device)
""",
    "004_09_mixed_precision": """
print(outputs.dtype, loss.dtype, next(model.parameters()).dtype)
print(scaler.get_scale() > 1, loss.item() < 1.5)
""",
    "004_10_data_parallel": """
output = model(torch.randn(8, 3, 8, 8).cuda())
output.sum().backward()
print(output.shape, output.device, all(p.grad is not None for p in model.parameters()))
""",
    "004_11_distributed": """
for x, y in loader:
    criterion(model(x.cuda(local_rank)), y.cuda(local_rank)).backward()
print(len(loader), dist.get_rank(), dist.get_world_size(), next(model.parameters()).grad.device)
dist.destroy_process_group()
""",
    "004_12_torch_profiler": """
import json, os
events = json.load(open('trace.json'))['traceEvents']
print(len(events) > 100, any(e.get('cat') == 'kernel' for e in events))
print(len([name for name in os.listdir('log') if '.pt.trace.json' in name]))
""",
    "004_13_memory_profiling": """
import os
print(os.path.getsize('memory_snapshot.pickle') > 1000)
""",
    "004_14_device_agnostic": "print(model(data).device, new_tensor.device, like_tensor.device)",
    "004_15_minimize_transfers": "print(loss.device, batch.device, target.device)",
    "004_16_no_grad": "print(loss.requires_grad, predictions.requires_grad, predictions.device)",
    "004_18_pitfall_device": "print(output.shape, output.device)",
    "004_19_pitfall_memory": "print(len(losses), {type(x).__name__ for x in losses})",
    "004_20_pitfall_gradients": "print(f'{loss.item():.4f}')",
    "004_21_debugging": """
net = torch.nn.Linear(3, 2)
print_tensor_info('weight', net.weight)
verify_model_device(net, 'cpu')
log_memory()
net.cuda()
print_tensor_info('weight', net.weight)
verify_model_device(net, 'cuda')
net.bias.data = net.bias.data.cpu()
verify_model_device(net, 'cuda')
""",
    "004_22_exercise1": "print(output.device.type == here)",
    "004_23_challenge": "print(tracker)",
}

# These show a mistake and then its remedy: each paragraph runs, also after one that failed.
BY_PARAGRAPHS = {"004_03_create_gpu_tensors", "004_18_pitfall_device"}
