import torch
from torch.cuda.amp import autocast, GradScaler

# Initialize the gradient scaler
scaler = GradScaler()

model = MyModel().cuda()
optimizer = torch.optim.Adam(model.parameters())

for epoch in range(num_epochs):
    for inputs, targets in train_loader:
        inputs = inputs.cuda()
        targets = targets.cuda()

        optimizer.zero_grad()

        # Forward pass with automatic casting to FP16
        with autocast():
            outputs = model(inputs)
            loss = criterion(outputs, targets)

        # Backward pass with scaled gradients
        scaler.scale(loss).backward()

        # Unscale and update
        scaler.step(optimizer)
        scaler.update()
