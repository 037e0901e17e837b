"""What the compiler's back end for sm_90 tells its front end; tests compare it with the real one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options that a kernel is compiled with, if a launch names none."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e4nv", "fp8e5")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ("fp8e4b15",)
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 2**30
    sanitize_overflow: bool = True
    debug: bool = False
    backend_name: str = "cuda"
    arch: str = "sm90"


def min_dot_size(lhs_type, rhs_type) -> tuple[int, int, int]:
    """The smallest M, N and K of a dot on an NVIDIA GPU."""
    assert lhs_type.scalar.primitive_bitwidth == rhs_type.scalar.primitive_bitwidth, (
        "lhs and rhs bitwidth must be the same"
    )
    return (1, 1, 32 if lhs_type.scalar.primitive_bitwidth == 8 else 16)
