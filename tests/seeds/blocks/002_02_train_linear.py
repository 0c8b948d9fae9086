import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import TensorDataset, DataLoader

# Device selection
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Data Generation
X = torch.randn(100, 10).to(device)  # Input data moved to the GPU initially
y = torch.randn(100, 1).to(device)  # Target data moved to GPU initially

# Model Definition
model = nn.Linear(10, 1).to(device) # Move model to the GPU

# Loss and Optimizer
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)

# Data Loading
dataset = TensorDataset(X, y)
dataloader = DataLoader(dataset, batch_size=32, shuffle=True)

# Training loop
num_epochs = 100
for epoch in range(num_epochs):
    for batch_x, batch_y in dataloader:
        # Zero gradients, perform forward and backward passes
        optimizer.zero_grad()
        outputs = model(batch_x)
        loss = criterion(outputs, batch_y)
        loss.backward()
        optimizer.step()

    if (epoch + 1) % 10 == 0:
         print(f'Epoch [{epoch+1}/{num_epochs}], Loss: {loss.item():.4f}')

print('Training complete')
