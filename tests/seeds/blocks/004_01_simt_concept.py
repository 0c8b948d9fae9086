# Conceptually, when you write:
activations = torch.relu(hidden_layer)  # Shape: (1024, 512)

# The GPU executes something like:
# for each of 524,288 elements IN PARALLEL:
#     if element > 0: keep it
#     else: set to 0
#
# With 6,912 CUDA cores, this happens in ~76 parallel batches
# instead of 524,288 sequential operations on CPU
