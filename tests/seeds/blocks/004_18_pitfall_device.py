# ❌ Error: tensors on different devices
model = Model().cuda()
data = torch.randn(32, 100)  # On CPU!
output = model(data)  # RuntimeError!

# ✓ Fix: Ensure same device
model = Model().cuda()
data = torch.randn(32, 100).cuda()
output = model(data)  # Works!

# ✓ Better: Use device variable
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
model = Model().to(device)
data = torch.randn(32, 100, device=device)
output = model(data)
