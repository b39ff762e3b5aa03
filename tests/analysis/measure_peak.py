"""Measure the peak memory of the analysis of a 512² picture enlarged to 2048²: python tests/analysis/measure_peak.py"""

import resource
import sys

import torch

import srno
from srno.analysis import basis_maps, choose_by_energy, summarise

SIZE = (2048, 2048)


def main(name: str) -> None:
    """Print the peak of the whole process in MB, for a shipped model or a preset with random weights."""
    model = (
        srno.load(name)
        if name in srno.list_models()
        else srno.create_model(srno.preset(name)).eval().requires_grad_(False)
    )
    noise = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    image = torch.nn.functional.interpolate(noise, size=(512, 512), mode="bicubic").clamp(0, 1)[0] * 2 - 1
    field = srno.lift(model, image, memory="512M")
    summary = summarise(field, SIZE)
    found = basis_maps(field, SIZE, choose_by_energy(summary, 4), summary=summary)
    maps = sum(each.nbytes for each in found.maps.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{name}: peak {peak / 1024:.0f} MB, of which the maps have {maps / 2**20:.0f} MB\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "light")
