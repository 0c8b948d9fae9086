# Method 1: Create directly on GPU
x = torch.randn(1000, 1000, device='cuda')
print(x.device)  # cuda:0

# Method 2: Create on CPU, then move
y = torch.randn(1000, 1000)
y = y.to('cuda')  # or y.cuda()
print(y.device)  # cuda:0

# Method 3: Specify GPU index (for multi-GPU)
z = torch.randn(1000, 1000, device='cuda:1')
print(z.device)  # cuda:1

# Create tensor matching another tensor's device
w = torch.zeros_like(x)  # Same device as x
print(w.device)  # cuda:0
