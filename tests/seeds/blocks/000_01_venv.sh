python -m venv ~/venv-cuda --upgrade-deps --symlinks --system-site-packages
source ~/venv-cuda/bin/activate
