# Your implementation should enable this usage:
with GPUMemoryTracker() as tracker:
    # Your GPU operations here
    model = LargeModel().cuda()
    output = model(large_input)

print(f"Peak memory: {tracker.peak_memory_mb:.2f} MB")
print(f"Net memory change: {tracker.memory_delta_mb:.2f} MB")
