"""Which values a parameter or a sample may have: objects with a check() of each element."""

import tessera as torch


class Constraint:
    """`is_discrete`: values are separate; `event_dim`: how many dimensions one value has."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """A boolean for each value: is it allowed?"""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """Depends on other parameters: what it is, the distribution says."""

    def __init__(self, *, is_discrete=False, event_dim=0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    def __init__(self, fn=None, *, is_discrete=False, event_dim=0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint):
    return isinstance(constraint, _Dependent)


class _Independent(Constraint):
    """Of values whose last dimensions belong together."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return result.flatten(result.dim() - n).all(-1) if n else result


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Interval(Constraint):
    """Between two bounds, None for no bound; `open`: without the lower one."""

    def __init__(self, lower_bound=None, upper_bound=None, *, integer=False, open=False):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.is_discrete, self._open = integer, open

    def check(self, value):
        good = value == value
        if self.is_discrete:
            good = good & (value % 1 == 0)
        if self.lower_bound is not None:
            above = value > self.lower_bound if self._open else value >= self.lower_bound
            good = good & above
        if self.upper_bound is not None:
            good = good & (value <= self.upper_bound)
        return good

    def __repr__(self):
        kind = "Integer" if self.is_discrete else ""
        return f"{kind}Interval(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _GreaterThan(_Interval):
    def __init__(self, lower_bound):
        super().__init__(lower_bound, open=True)

    def __repr__(self):
        return f"GreaterThan(lower_bound={self.lower_bound})"


class _GreaterThanEq(_Interval):
    def __init__(self, lower_bound):
        super().__init__(lower_bound)

    def __repr__(self):
        return f"GreaterThanEq(lower_bound={self.lower_bound})"


class _Real(Constraint):
    def check(self, value):
        return value == value


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        lower = (value.tril() == value).flatten(-2).all(-1)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value):
        symmetric = torch.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)
        return symmetric & (torch.linalg.cholesky_ex(value).info == 0)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _Independent
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _Interval(0, integer=True)
positive_integer = _Interval(1, integer=True)
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
interval = _Interval
half_open_interval = _Interval
unit_interval = _Interval(0.0, 1.0)
simplex = _Simplex()
lower_cholesky = _LowerCholesky()
positive_definite = _PositiveDefinite()


def integer_interval(lower_bound, upper_bound):
    return _Interval(lower_bound, upper_bound, integer=True)
