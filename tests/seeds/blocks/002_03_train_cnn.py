import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import TensorDataset, DataLoader

# Device selection
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Simple CNN model
class SimpleCNN(nn.Module):
    def __init__(self):
        super(SimpleCNN, self).__init__()
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.fc = nn.Linear(16 * 7 * 7, 10) # Output 10 classes with 7x7 based on pooling

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = x.view(x.size(0), -1)
        x = self.fc(x)
        return x

# Data generation, simulating small image batch (Batch size, channels, height, width)
X = torch.randn(32, 3, 14, 14).to(device)
y = torch.randint(0,10, (32,)).to(device)

# Model initialization
model = SimpleCNN().to(device)

# Loss and optimizer
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

# Dataset and Data Loader
dataset = TensorDataset(X,y)
dataloader = DataLoader(dataset, batch_size = 16, shuffle = True)

# Training Loop
num_epochs = 50
for epoch in range(num_epochs):
    for batch_x, batch_y in dataloader:
        #Zero gradients, forward pass, backward pass
        optimizer.zero_grad()
        outputs = model(batch_x)
        loss = criterion(outputs, batch_y)
        loss.backward()
        optimizer.step()
    if (epoch + 1) % 10 == 0:
        print(f'Epoch [{epoch+1}/{num_epochs}], Loss: {loss.item():.4f}')

print("Training complete")
