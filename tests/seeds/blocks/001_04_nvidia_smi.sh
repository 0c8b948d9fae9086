!nvidia-smi
