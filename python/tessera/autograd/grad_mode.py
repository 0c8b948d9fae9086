"""The modes, where PyTorch keeps them."""

from .._grad_mode import enable_grad as enable_grad
from .._grad_mode import inference_mode as inference_mode
from .._grad_mode import no_grad as no_grad
from .._grad_mode import set_grad_enabled as set_grad_enabled
from .._missing import module_getattr

__getattr__ = module_getattr(__name__)
