"""torch.cpu.amp.GradScaler: torch.amp's, of the CPU."""

from ...amp.grad_scaler import GradScaler as _GradScaler
from ...amp.grad_scaler import OptState as OptState


class GradScaler(_GradScaler):
    def __init__(
        self,
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
