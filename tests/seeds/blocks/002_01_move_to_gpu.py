import torch

# 1. Check if a CUDA GPU is available
if torch.cuda.is_available():
    device = torch.device("cuda")
    print("CUDA GPU is available, using device:", device)
    print("Number of available GPUs:", torch.cuda.device_count())
else:
    device = torch.device("cpu")
    print("CUDA GPU is not available, using device:", device)

# 2. Create a tensor
a = torch.randn(10, 10)
print("Tensor 'a' initial device:", a.device)

# 3. Move tensor to the GPU
a_gpu = a.to(device)
print("Tensor 'a' device after moving to GPU:", a_gpu.device)


# 4. Create a simple linear model
model = torch.nn.Linear(10, 1)
print("Model's parameter initial device:", next(model.parameters()).device)

# 5. Move the model to GPU
model.to(device)
print("Model's parameter device after moving to GPU:", next(model.parameters()).device)

# 6. Perform calculations on GPU
with torch.no_grad():
  output = model(a_gpu)
print("Output Tensor device", output.device)

# 7. Move output to CPU for further analysis
output_cpu = output.to('cpu')
print("Output tensor device after moving to CPU",output_cpu.device)


