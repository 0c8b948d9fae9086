"""The nodes of graphs."""

from .._C import Node as Node
