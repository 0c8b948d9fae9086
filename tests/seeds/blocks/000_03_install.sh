source ~/venv-cuda/bin/activate
pip3 install torch torchvision torchaudio
