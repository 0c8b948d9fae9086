import torch
from torch.profiler import profile, ProfilerActivity, tensorboard_trace_handler

model = MyModel().cuda()
inputs = torch.randn(32, 3, 224, 224).cuda()

# Basic profiling
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    record_shapes=True,
    profile_memory=True,
) as prof:
    for _ in range(10):
        output = model(inputs)
        output.sum().backward()

# Print summary sorted by GPU time
print(prof.key_averages().table(
    sort_by="cuda_time_total",
    row_limit=10
))

# Export to Chrome trace (open in chrome://tracing)
prof.export_chrome_trace("trace.json")

# TensorBoard integration
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    on_trace_ready=tensorboard_trace_handler('./log'),
    schedule=torch.profiler.schedule(
        wait=1,    # Skip first iteration (warmup)
        warmup=1,  # Warmup iteration
        active=3,  # Profile 3 iterations
        repeat=2   # Repeat cycle
    ),
) as prof:
    for step, (data, target) in enumerate(loader):
        output = model(data.cuda())
        loss = criterion(output, target.cuda())
        loss.backward()
        optimizer.step()
        prof.step()  # Signal next iteration
