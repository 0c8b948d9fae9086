# During training
with torch.enable_grad():
    output = model(x)
    loss = criterion(output, y)
    loss.backward()

# During inference (saves memory!)
model.eval()
with torch.no_grad():
    predictions = model(test_data)
    # Gradient computation disabled, saves memory
