"""A CUDA without devices, and the package that cupy.cuda.cudnn goes into."""

from types import SimpleNamespace

__path__: list[str] = []

runtime = SimpleNamespace(getDeviceCount=lambda: 0)


def is_available() -> bool:
    return False
