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

model = SimpleModel().to(device) # Move model to GPU
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

data = torch.randn(100, 10).to(device) # Move data to GPU
labels = torch.randn(100, 2).to(device) # Move labels to GPU

for epoch in range(5):
    optimizer.zero_grad()
    outputs = model(data)
    loss = criterion(outputs, labels)
    loss.backward()
    optimizer.step()
    print(f"Epoch: {epoch}, Loss: {loss.item()}")
