import torch

# Check if CUDA is available
print(torch.cuda.is_available())  # True if GPU available

# Get the number of GPUs
print(torch.cuda.device_count())  # e.g., 2

# Get the current device
print(torch.cuda.current_device())  # e.g., 0

# Get device name
print(torch.cuda.get_device_name(0))  # e.g., 'NVIDIA GeForce RTX 4090'

# Get device properties
props = torch.cuda.get_device_properties(0)
print(f"Total memory: {props.total_memory / 1e9:.2f} GB")
print(f"Compute capability: {props.major}.{props.minor}")
