"""Tessera under PyTorch's name: what `import torch` finds in a child of `tessera run`."""

import tessera._alias

tessera._alias.install()
