# Delete tensors you no longer need
del large_tensor

# Clear cache (releases unused cached memory)
torch.cuda.empty_cache()

# IMPORTANT: empty_cache() does NOT free memory held by tensors!
# It only releases memory that PyTorch cached for future allocations.

# Use context manager for temporary allocations
with torch.no_grad():
    # Gradient tensors not stored, saving memory
    predictions = model(inputs)

# Gradient checkpointing for very large models
from torch.utils.checkpoint import checkpoint

class LargeModel(nn.Module):
    def forward(self, x):
        # Recompute activations during backward pass
        # instead of storing them
        x = checkpoint(self.block1, x)
        x = checkpoint(self.block2, x)
        return x
