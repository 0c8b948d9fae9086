# ❌ Gradients accumulate (sometimes intentional, often not)
for batch in loader:
    loss = criterion(model(batch), target)
    loss.backward()  # Gradients ADD to existing!
    optimizer.step()

# ✓ Fix: Zero gradients each iteration
for batch in loader:
    optimizer.zero_grad()  # Reset gradients
    loss = criterion(model(batch), target)
    loss.backward()
    optimizer.step()
