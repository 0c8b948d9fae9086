# Synchronous (default) - blocks until complete
gpu_tensor = cpu_tensor.to('cuda')  # CPU waits here

# Asynchronous - CPU continues immediately
gpu_tensor = cpu_tensor.to('cuda', non_blocking=True)
# CPU can do other work while transfer happens

# For async to be truly effective, use pinned memory
pinned_tensor = cpu_tensor.pin_memory()
gpu_tensor = pinned_tensor.to('cuda', non_blocking=True)

# In DataLoader for automatic pinned memory
train_loader = DataLoader(
    dataset,
    batch_size=32,
    pin_memory=True,  # Enables pinned memory for faster transfers
    num_workers=4
)
