"""Which expressions of a program are tensors, as far as can be told without running it."""

import ast

_NO_TENSOR = set(  # functions and methods whose results are none
    """size dim ndimension numel nelement item tolist numpy stride storage_offset data_ptr type
    element_size is_contiguous is_floating_point is_complex is_tensor is_storage equal allclose
    get_device manual_seed seed initial_seed save load no_grad enable_grad set_grad_enabled
    inference_mode is_grad_enabled get_default_dtype set_default_dtype device dtype Size split chunk
    unbind topk sort max min median mode kthvalue unique backward register_hook untyped_storage
    storage is_shared compile finfo iinfo Generator typename promote_types can_cast result_type
    set_printoptions Stream Event autocast use_deterministic_algorithms get_num_threads
    set_num_threads vmap export jit script""".split()
)
_TENSOR_ATTRIBUTES = {"T", "mT", "H", "mH", "grad", "data", "real", "imag"}


class Tensors:
    """Remembers, function by function, which names were given tensors."""

    def __init__(self, resolve):
        self._resolve = resolve  # the dotted torch name of an expression, or None
        self._scopes = [{}]

    def enter(self, function, in_module_class):
        scope = {}
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        for at, argument in enumerate(arguments):
            annotated = argument.annotation is not None
            if annotated:
                scope[argument.arg] = self._resolve(argument.annotation) == "torch.Tensor"
            elif in_module_class and function.name == "forward" and at == 1:
                scope[argument.arg] = argument.arg in ("x", "input", "inputs")
            else:
                scope[argument.arg] = False
        self._scopes.append(scope)

    def leave(self):
        self._scopes.pop()

    def assign(self, target, value):
        if isinstance(target, ast.Name):
            self._scopes[-1][target.id] = value is not None and self.is_tensor(value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            same = len(values) == len(target.elts)
            for at, item in enumerate(target.elts):
                self.assign(item, values[at] if same else None)

    def is_tensor(self, node):
        if isinstance(node, ast.Name):
            return next((s[node.id] for s in reversed(self._scopes) if node.id in s), False)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            return self.is_tensor(node.left) or self.is_tensor(node.right)
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.Not) and self.is_tensor(node.operand)
        if isinstance(node, ast.Subscript):
            return self.is_tensor(node.value)
        if isinstance(node, ast.Attribute):
            return node.attr in _TENSOR_ATTRIBUTES and self.is_tensor(node.value)
        return False

    def _call(self, node):
        dotted = self._resolve(node.func)
        if dotted is not None:
            owner, _, name = dotted.rpartition(".")
            functions = ("torch", "torch.nn.functional", "torch.linalg", "torch.special")
            return owner in functions and name.islower() and name not in _NO_TENSOR
        if isinstance(node.func, ast.Attribute):
            return node.func.attr not in _NO_TENSOR and self.is_tensor(node.func.value)
        return False
