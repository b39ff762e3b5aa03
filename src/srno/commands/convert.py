"""srno convert"""

import sys
from pathlib import Path

from srno.errors import SRNOError


def convert(source: Path, target: Path, /, *, overwrite: bool = False) -> None:
    """Convert a checkpoint of the public code to our format. Nothing in the file is executed.

    Parameters
    ----------
    source
        A .pth file of the original SRNO release, or of another supported system.
    target
        Where to write, ending in .safetensors.
    overwrite
        Replace TARGET if it exists.
    """
    if target.suffix != ".safetensors":
        raise SRNOError(f"{target}: the target must end in .safetensors")
    if target.exists() and not overwrite:
        raise SRNOError(f"{target} exists; use --overwrite to replace it")

    from srno.checkpoints.catalogue import read_checkpoint
    from srno.checkpoints.native import write_checkpoint

    checkpoint = read_checkpoint(source)
    write_checkpoint(checkpoint, target)
    parameters = sum(tensor.numel() for tensor in checkpoint.state.values())
    sys.stdout.write(f"{target}: {checkpoint.config.system}, {parameters:,} parameters\n")
