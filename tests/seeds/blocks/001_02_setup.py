import torch
import os

def display_cuda_info():
    """Display comprehensive CUDA and GPU information"""
    print(f"CUDA is available: {torch.cuda.is_available()}")
    if torch.cuda.is_available():
        print(f"CUDA version: {torch.version.cuda}")
        print(f"Current GPU ID: {torch.cuda.current_device()}")
        print(f"Number of GPUs: {torch.cuda.device_count()}")
        
        # Display information for each GPU
        for i in range(torch.cuda.device_count()):
            print(f"\nGPU {i} info:")
            print(f"Name: {torch.cuda.get_device_name(i)}")
            print(f"Memory allocated: {torch.cuda.memory_allocated(i) / 1e9:.2f} GB")
            print(f"Memory cached: {torch.cuda.memory_reserved(i) / 1e9:.2f} GB")

def switch_gpu(gpu_id):
    """Switch to specified GPU"""
    if not torch.cuda.is_available():
        raise RuntimeError("CUDA is not available")
    
    if gpu_id >= torch.cuda.device_count():
        raise ValueError(f"GPU {gpu_id} not found. Available GPUs: 0-{torch.cuda.device_count()-1}")
    
    # Set environment variable
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu_id)
    # Set PyTorch default device
    torch.cuda.set_device(gpu_id)
    
    print(f"Switched to GPU {gpu_id}: {torch.cuda.get_device_name(gpu_id)}")

def move_model_to_gpu(model, gpu_id):
    """Move a PyTorch model to specified GPU"""
    if not torch.cuda.is_available():
        raise RuntimeError("CUDA is not available")
    
    switch_gpu(gpu_id)
    return model.cuda()
