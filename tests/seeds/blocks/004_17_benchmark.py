import torch.utils.benchmark as benchmark

# Warmup GPU
for _ in range(10):
    _ = torch.mm(torch.randn(1000, 1000, device='cuda'),
                 torch.randn(1000, 1000, device='cuda'))

# Synchronize before timing
torch.cuda.synchronize()

# Use proper benchmarking
t = benchmark.Timer(
    stmt='torch.mm(a, b)',
    setup='a = torch.randn(1000, 1000, device="cuda"); b = torch.randn(1000, 1000, device="cuda")',
    num_threads=1
)
print(t.timeit(100))
