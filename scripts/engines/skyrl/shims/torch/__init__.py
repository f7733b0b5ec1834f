"""Stands in for torch: skyrl.backends.renderer imports it for image inputs only."""


class Tensor: ...
