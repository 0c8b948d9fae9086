# ❌ Memory leak: storing tensors with gradients
losses = []
for batch in loader:
    loss = criterion(model(batch), target)
    losses.append(loss)  # Keeps computation graph!
    loss.backward()

# ✓ Fix: Detach or use .item()
losses = []
for batch in loader:
    loss = criterion(model(batch), target)
    losses.append(loss.item())  # Just the number
    loss.backward()
