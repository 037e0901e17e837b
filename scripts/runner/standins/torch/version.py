"""What PyTorch says of its build: neither CUDA nor ROCm."""

cuda = hip = None
