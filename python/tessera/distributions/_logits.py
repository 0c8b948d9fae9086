"""Distributions over choices, given by probabilities or by their logarithms."""

from .utils import lazy_property, logits_to_probs, probs_to_logits


def only_one(probs, logits):
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ByProbsOrLogits:
    """The one that was not given is computed when it is asked for."""

    _binary = False

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self):
        return self._param.size()
