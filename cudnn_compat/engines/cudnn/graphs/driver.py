"""The few calls of the CUDA driver that CuPy does not offer: kernels inside of graphs."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

from cudnn_compat.errors import LibraryNotFound

__all__ = ["DriverError", "KernelNode", "captured_node", "launch", "set_parameters"]

_CAPTURE_IS_ACTIVE: Final = 1


class DriverError(RuntimeError):
    """The driver refused one of these calls."""


class KernelNode(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS`` (its first version, which every driver takes)."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid_x", ctypes.c_uint),
        ("grid_y", ctypes.c_uint),
        ("grid_z", ctypes.c_uint),
        ("block_x", ctypes.c_uint),
        ("block_y", ctypes.c_uint),
        ("block_z", ctypes.c_uint),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
        ("extra", ctypes.c_void_p),
    )


@functools.cache
def _driver() -> Any:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise LibraryNotFound(f"the CUDA driver does not load: {error}") from error
    pointer, unsigned = ctypes.c_void_p, ctypes.c_uint
    driver.cuLaunchKernel.argtypes = [pointer, *[unsigned] * 7, pointer, pointer, pointer]
    driver.cuStreamGetCaptureInfo_v2.argtypes = [pointer] * 6
    driver.cuGraphExecKernelNodeSetParams.argtypes = [pointer] * 3
    return driver


def _check(status: int, call: str) -> None:
    if status:
        raise DriverError(f"{call} failed with CUDA driver error {status}")


def launch(node: KernelNode, stream: int) -> None:
    """Launch, or capture, the kernel that a node describes."""
    status = _driver().cuLaunchKernel(
        node.function,
        node.grid_x,
        node.grid_y,
        node.grid_z,
        node.block_x,
        node.block_y,
        node.block_z,
        node.shared_bytes,
        stream,
        node.parameters,
        None,
    )
    _check(status, "cuLaunchKernel")


def captured_node(stream: int) -> int:
    """The node that was captured last on a stream that captures."""
    state, serial = ctypes.c_int(), ctypes.c_uint64()
    graph, nodes, count = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
    status = _driver().cuStreamGetCaptureInfo_v2(
        stream,
        ctypes.byref(state),
        ctypes.byref(serial),
        ctypes.byref(graph),
        ctypes.byref(nodes),
        ctypes.byref(count),
    )
    _check(status, "cuStreamGetCaptureInfo")
    if state.value != _CAPTURE_IS_ACTIVE or count.value != 1:
        raise DriverError("the stream does not capture one call behind the other")
    node: int | None = nodes[0]
    assert node is not None
    return node


def set_parameters(executable: int, node: int, parameters: KernelNode) -> None:
    """Let a node of an executable graph have other parameters from its next launch on."""
    status = _driver().cuGraphExecKernelNodeSetParams(executable, node, ctypes.byref(parameters))
    _check(status, "cuGraphExecKernelNodeSetParams")
