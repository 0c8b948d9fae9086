# ❌ BAD: Transfer every iteration
for batch in loader:
    batch = batch.cuda()
    output = model(batch)
    result = output.cpu()  # Unnecessary transfer!
    loss = criterion(result, target)

# ✓ GOOD: Keep everything on GPU
for batch, target in loader:
    batch = batch.cuda(non_blocking=True)
    target = target.cuda(non_blocking=True)
    output = model(batch)
    loss = criterion(output, target)  # All on GPU!
    # Only transfer final results when needed
