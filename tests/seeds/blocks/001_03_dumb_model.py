# Test with a dumb model
model = torch.nn.Linear(10, 10)  # Simple example model
try:
    model = move_model_to_gpu(model, 0)  # Move to GPU 0
    print("Model successfully moved to GPU")
except Exception as e:
    print(f"Error moving model to GPU: {e}")
