# Check tensor devices
def print_tensor_info(name, tensor):
    print(f"{name}: shape={tensor.shape}, device={tensor.device}, "
          f"dtype={tensor.dtype}, requires_grad={tensor.requires_grad}")

# Verify all model parameters are on GPU
def verify_model_device(model, expected_device):
    for name, param in model.named_parameters():
        assert param.device.type == expected_device, \
            f"Parameter {name} on {param.device}, expected {expected_device}"

# Track memory during training
def log_memory():
    allocated = torch.cuda.memory_allocated() / 1e9
    reserved = torch.cuda.memory_reserved() / 1e9
    print(f"GPU Memory: {allocated:.2f}GB allocated, {reserved:.2f}GB reserved")
