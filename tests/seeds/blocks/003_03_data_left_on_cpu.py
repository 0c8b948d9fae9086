import torch
import torch.nn as nn
import torch.optim as optim

# Check for CUDA availability
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

class SimpleModel(nn.Module):
    def __init__(self):
        super(SimpleModel, self).__init__()
        self.fc = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc(x)

model = SimpleModel().to(device) # Model is moved
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

data = torch.randn(100, 10) # Data still on CPU
labels = torch.randn(100, 2) # Labels still on CPU

for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(data) # Error - data is on CPU, model is on GPU
    loss = criterion(outputs, labels) # Error - labels are on CPU, loss function expects GPU
    loss.backward()
    optimizer.step()
    print(f"Epoch: {epoch}, Loss: {loss.item()}")
