import torch

# Snapshot memory state
torch.cuda.memory._record_memory_history(max_entries=100000)

# Run your code
model = MyModel().cuda()
for data in loader:
    output = model(data.cuda())
    output.sum().backward()

# Save snapshot for visualization
torch.cuda.memory._dump_snapshot("memory_snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)

# View with: python -m torch.cuda.memory_viz memory_snapshot.pickle

# Quick memory stats
print(f"Allocated: {torch.cuda.memory_allocated() / 1e9:.2f} GB")
print(f"Cached: {torch.cuda.memory_reserved() / 1e9:.2f} GB")
print(f"Max allocated: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")
