"""torch.cpu.amp.autocast_mode."""

from . import autocast as autocast
