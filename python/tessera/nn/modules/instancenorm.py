"""Instance normalisation: over each sample's own image."""

import warnings

from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def _get_no_batch_dim(self):
        raise NotImplementedError

    def _load_from_state_dict(
        self,
        state_dict,
        prefix,
        local_metadata,
        strict,
        missing_keys,
        unexpected_keys,
        error_msgs,
    ):
        version = local_metadata.get("version", None)
        # Before version 2 running statistics were saved without being meant.
        if version is None and not self.track_running_stats:
            stale = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if stale:
                error_msgs.append(
                    "Unexpected running stats buffer(s) "
                    + " and ".join(f'"{key}"' for key in stale)
                    + f" for {type(self).__name__} with track_running_stats=False. If these keys "
                    "are from a checkpoint saved before 0.4.0, remove them from the state dict "
                    "before loading."
                )
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def forward(self, input):
        self._check_input_dim(input)
        no_batch = self._get_no_batch_dim()
        feature_dim = input.dim() - no_batch
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence "
                "this warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=2,
            )
        if input.dim() == no_batch:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class _Dims1:
    def _get_no_batch_dim(self):
        return 2

    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class _Dims2:
    def _get_no_batch_dim(self):
        return 3

    def _check_input_dim(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")


class _Dims3:
    def _get_no_batch_dim(self):
        return 4

    def _check_input_dim(self, input):
        if input.dim() not in (4, 5):
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")


class InstanceNorm1d(_Dims1, _InstanceNorm):
    """Normalises each channel over its length."""


class InstanceNorm2d(_Dims2, _InstanceNorm):
    """Normalises each channel over its image."""


class InstanceNorm3d(_Dims3, _InstanceNorm):
    """Normalises each channel over its volume."""


class _LazyInstanceNorm(_LazyNormBase):
    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
    ):
        super().__init__(eps, momentum, affine, track_running_stats, device, dtype)


class LazyInstanceNorm1d(_Dims1, _LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm1d without num_features."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_Dims2, _LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm2d without num_features."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_Dims3, _LazyInstanceNorm, _InstanceNorm):
    """InstanceNorm3d without num_features."""

    cls_to_become = InstanceNorm3d
