import torch

# Memory currently allocated by tensors
allocated = torch.cuda.memory_allocated() / 1e9
print(f"Allocated: {allocated:.2f} GB")

# Peak memory allocated during program
max_allocated = torch.cuda.max_memory_allocated() / 1e9
print(f"Peak allocated: {max_allocated:.2f} GB")

# Memory reserved by PyTorch's caching allocator
reserved = torch.cuda.memory_reserved() / 1e9
print(f"Reserved: {reserved:.2f} GB")

# Total GPU memory
total = torch.cuda.get_device_properties(0).total_memory / 1e9
print(f"Total: {total:.2f} GB")

# Print detailed memory summary
print(torch.cuda.memory_summary())
