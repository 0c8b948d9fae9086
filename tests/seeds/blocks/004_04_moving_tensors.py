import torch

# Define device (device-agnostic code)
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
print(f"Using device: {device}")

# Create tensor on CPU
cpu_tensor = torch.randn(1000, 1000)
print(f"CPU tensor device: {cpu_tensor.device}")

# Move to GPU
gpu_tensor = cpu_tensor.to(device)
print(f"GPU tensor device: {gpu_tensor.device}")

# Move back to CPU (e.g., for numpy conversion)
back_to_cpu = gpu_tensor.cpu()  # or .to('cpu')
numpy_array = back_to_cpu.numpy()

# Move model to GPU
model = torch.nn.Linear(1000, 100).to(device)
print(f"Model device: {next(model.parameters()).device}")

# IMPORTANT: Data and model must be on same device!
output = model(gpu_tensor)  # ✓ Works
# output = model(cpu_tensor)  # ✗ RuntimeError!
