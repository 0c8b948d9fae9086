"""torch.func: functions of functions, over autograd.

`grad`, `vjp`, `jacrev` are reverse mode; `jvp`, `jacfwd`, `linearize` differentiate the gradient
once more, so that every operator on the way has to be differentiable twice. `vmap` is a loop.
"""

from .._missing import module_getattr
from ._gradients import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._modules import (
    debug_unwrap,
    functional_call,
    functionalize,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from ._vmap import vmap

__getattr__ = module_getattr(__name__)
