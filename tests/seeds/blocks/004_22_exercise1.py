model = nn.Linear(100, 10)
data = torch.randn(32, 100)
output = model(data)
