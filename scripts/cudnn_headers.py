"""What cuDNN's headers say, read by libclang: for `generate_prototypes.py`.

libclang reads the headers as the compiler does. Any diagnostic ends the run: a type that is not
known would otherwise silently become `int`.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import CursorKind, Index, Type, TypeKind

__all__ = ["FUNCTIONS", "Headers", "read_headers"]

FUNCTIONS = """
    GetVersion GetCudartVersion GetErrorString GetLastErrorString GetProperty
    AdvVersionCheck AdvInferVersionCheck AdvTrainVersionCheck
    Create Destroy SetStream GetStream
    CreateTensorDescriptor SetTensor4dDescriptor SetTensorNdDescriptor SetTensorNdDescriptorEx
    GetTensor4dDescriptor GetTensorNdDescriptor GetTensorSizeInBytes DestroyTensorDescriptor
    CreateRNNDescriptor SetRNNDescriptor_v8 GetRNNDescriptor_v8 DestroyRNNDescriptor
    RNNSetClip_v8 RNNGetClip_v8 RNNSetClip_v9 RNNGetClip_v9 BuildRNNDynamic
    CreateRNNDataDescriptor SetRNNDataDescriptor GetRNNDataDescriptor DestroyRNNDataDescriptor
    GetRNNTempSpaceSizes GetRNNWeightSpaceSize GetRNNWeightParams
    RNNForward RNNBackwardData_v8 RNNBackwardWeights_v8
    CreateDropoutDescriptor SetDropoutDescriptor RestoreDropoutDescriptor GetDropoutDescriptor
    DestroyDropoutDescriptor DropoutGetStatesSize DropoutGetReserveSpaceSize
    DropoutForward DropoutBackward
    SoftmaxForward SoftmaxBackward
    CreateActivationDescriptor SetActivationDescriptor GetActivationDescriptor
    DestroyActivationDescriptor ActivationForward ActivationBackward
"""
"""What the package calls, without the prefix `cudnn`. Each is in at least one major."""

MACROS = ("CUDNN_DIM_MAX", "CUDNN_RNN_PADDED_IO_DISABLED", "CUDNN_RNN_PADDED_IO_ENABLED")

# Instead of the machine's C library, so that the result is the same everywhere.
STAND_INS = {
    "limits.h": "#define INT_MAX __INT_MAX__\n#define UINT_MAX (INT_MAX * 2U + 1U)\n",
    "stddef.h": "typedef __SIZE_TYPE__ size_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "typedef __INT32_TYPE__ int32_t;\ntypedef __INT64_TYPE__ int64_t;\n"
    "typedef __UINT32_TYPE__ uint32_t;\n",
    "stdlib.h": "#include <stddef.h>\n",
}

SCALARS = {
    "int": "c_int",
    "int32_t": "c_int32",
    "uint32_t": "c_uint32",
    "unsigned int": "c_uint",
    "unsigned long long": "c_ulonglong",
    "size_t": "c_size_t",
    "float": "c_float",
    "double": "c_double",
}


@dataclass
class Headers:
    """What one major's headers say."""

    version: str
    functions: dict[str, str] = field(default_factory=dict)
    """Name of a function to its entry in the generated file."""
    enums: dict[str, dict[str, int]] = field(default_factory=dict)
    """Name of an enum type (and "macros") to its names and values, in the header's order."""


def read_headers(cudnn: Path, cuda: Path) -> Headers:
    """Parse ``cudnn.h`` of one version.

    Args:
        cudnn: folder of ``cudnn.h``.
        cuda: folder of ``cuda_runtime_api.h``; of any CUDA, since only names of types are needed.

    Raises:
        SystemExit: the compiler had something to say, or a wanted function has an unknown type.
    """
    macros = "".join(f"macro_{name} = {name},\n" for name in MACROS)
    files = {
        "all.c": f"#include <cudnn.h>\nenum macros {{\n{macros}}};\n",
        **STAND_INS,
    }
    unit = Index.create().parse(
        "/made/all.c",
        args=["-std=c99", "-nostdinc", "-Wall", f"-I{cudnn}", f"-I{cuda}", "-isystem/made"],
        unsaved_files=[(f"/made/{name}", text) for name, text in files.items()],
    )
    if diagnostics := [str(each) for each in unit.diagnostics]:
        sys.exit("\n".join(["the headers do not parse cleanly:", *diagnostics]))

    headers = Headers(_version(cudnn))
    wanted = {f"cudnn{name}" for name in FUNCTIONS.split()}
    used = {"cudnnStatus_t"}
    for cursor in unit.cursor.get_children():
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.spelling in wanted:
            parameters = [(each.spelling, each.type) for each in cursor.get_arguments()]
            headers.functions[cursor.spelling] = _entry(cursor.result_type, parameters)
            used |= {_pointee(kind).spelling for _, kind in parameters}
    for cursor in unit.cursor.get_children():
        if cursor.kind == CursorKind.TYPEDEF_DECL and cursor.spelling in used:
            values = _enumerators(cursor.underlying_typedef_type)
        elif cursor.kind == CursorKind.ENUM_DECL and cursor.spelling == "macros":
            values = _enumerators(cursor.type)
        else:
            continue
        if values:
            headers.enums[cursor.spelling] = values
    return headers


def _version(cudnn: Path) -> str:
    text = (cudnn / "cudnn_version.h").read_text(encoding="utf-8")
    numbers = dict(re.findall(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d+)", text))
    return ".".join(numbers[name] for name in ("MAJOR", "MINOR", "PATCHLEVEL"))


def _enumerators(kind: Type) -> dict[str, int]:
    declaration = kind.get_canonical().get_declaration()
    return {
        each.spelling.removeprefix("macro_"): each.enum_value
        for each in declaration.get_children()
        if each.kind == CursorKind.ENUM_CONSTANT_DECL
    }


def _pointee(kind: Type) -> Type:
    """The type without const, and what it points to if it is a pointer to something plain."""
    if kind.kind in (TypeKind.INCOMPLETEARRAY, TypeKind.CONSTANTARRAY):
        return _pointee(kind.get_array_element_type())
    if kind.kind == TypeKind.POINTER:
        return _pointee(kind.get_pointee())
    plain: Type = kind.get_declaration().type if "const " in kind.spelling else kind
    return plain


def _entry(result: Type, parameters: list[tuple[str, Type]]) -> str:
    maker = {
        "cudnnStatus_t": "_status(",
        "const char *": "_returns(c_char_p, ",
        "size_t": "_returns(c_size_t, ",
        "void": "_returns(None, ",
    }[result.spelling]
    listed = ", ".join(f"{name}={_ctype(name, kind)}" for name, kind in parameters)
    return maker + listed if listed else maker.removesuffix(", ")


def _ctype(name: str, kind: Type) -> str:
    """The ctypes type of a parameter: see the docstring of the generated file."""
    if kind.kind in (TypeKind.INCOMPLETEARRAY, TypeKind.POINTER):
        array = kind.kind == TypeKind.INCOMPLETEARRAY
        target = kind.get_array_element_type() if array else kind.get_pointee()
        if target.get_canonical().kind in (TypeKind.CHAR_S, TypeKind.CHAR_U):
            return "c_char_p"
        # Device memory, whose address is a number.
        if target.get_canonical().kind == TypeKind.VOID or name.startswith("dev"):
            return "c_void_p"
        return f"POINTER({_ctype('', target)})"
    canonical = kind.get_canonical()
    if canonical.kind == TypeKind.ENUM:
        return "c_int"
    # A handle, a descriptor or a stream: a pointer to a struct that nobody sees.
    if canonical.kind == TypeKind.POINTER and canonical.get_pointee().kind in (
        TypeKind.RECORD,
        TypeKind.ELABORATED,
        TypeKind.VOID,
    ):
        return "c_void_p"
    try:
        return SCALARS[kind.spelling.removeprefix("const ")]
    except KeyError:
        sys.exit(f"parameter {name} has a type that this script does not know: {kind.spelling}")
