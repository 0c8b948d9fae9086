# Define device once at the top
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

# Use throughout your code
model = Model().to(device)
data = data.to(device)

# Create tensors on the right device
new_tensor = torch.zeros(100, device=device)

# Or match existing tensor's device
like_tensor = torch.zeros_like(data)  # Same device as data
