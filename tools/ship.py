"""Put a run's weights into the package, with a card of their origin and their scores.

    python tools/ship.py runs/light/best.safetensors light --data EVALUATION --sets Set5 Set14 B100 --scales 2,3,4

The scores are measured here, under the `benchmark` protocol; only data and licence on the card are written by hand.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from srno.checkpoints.catalogue import find, read_checkpoint
from srno.checkpoints.native import Card, write_checkpoint
from srno.evaluation.datasets import find_sets
from srno.evaluation.methods import evaluate_method, make_method
from srno.evaluation.protocols import PROTOCOLS, named_protocol, parse_scales
from srno.files import cache_folder
from srno.upscaling.upscaler import Upscaler

WEIGHTS = Path(__file__).parents[1] / "src" / "srno" / "weights"
TRAINING_DATA = (
    "470 crops of 512×512 from photographs (Cloudinary CID22, CLIC 2025, gb82, wallpapers of Ubuntu Budgie, Buddies of "
    "Budgie, elementary, Solus, deepin, Fedora, GNOME and Debian, metadata-extractor samples), the 100 pictures of "
    "General-100, and 158 crops of man-made structure (Linux Mint's backgrounds, Pexels and Unsplash photographs in "
    "public repositories, Wikimedia Commons, Raspberry Pi's documentation, OpenSfM, Pepper&Carrot and others). "
    "Licences of the pictures: CC0, public domain, CC BY, CC BY-SA, Unsplash, free to use; General-100 for research. "
    "None of them is in an evaluation set."
)
LICENCE = "MIT; the training pictures keep their own licences (see data)"


def scores(path: Path, data: Path, names: list[str], scales: str, jpeg: int | None) -> dict[str, dict[str, float]]:
    """{set: {"x2": PSNR, …}}; scores in the cache of `srno evaluate` are reused."""
    method = make_method(path.stem, [read_checkpoint(path)], Upscaler(integral="exact", precision="fp32"))
    protocol = named_protocol("benchmark", jpeg=jpeg)
    results: dict[str, dict[str, float]] = {}
    for name in names:
        pictures = find_sets(data / name)
        (found,) = evaluate_method(method, pictures, parse_scales(scales), protocol, cache=cache_folder("scores"))
        title = name if jpeg is None else f"{name}, JPEG {jpeg}"
        results[title] = {f"x{scale}": round(score.psnr, 3) for scale, score in found.mean.items()}
        print(title, results[title], flush=True)
    return results


def recipe(path: Path) -> str:
    """The recipe of a run, after those of the runs that it was initialised from."""
    config = json.loads((path.parent / "config.json").read_text())
    files = ("data", "validation", "init", "init_encoder")
    settings = {key: value for key, value in config.items() if key not in files}
    own = f"{read_checkpoint(path).card.recipe}; settings {json.dumps(settings)}"
    if config["init"] is not None:
        start = Path(config["init"])
        first = recipe(start) if (start.parent / "config.json").exists() else read_checkpoint(find(start)).card.recipe
        return f"{first}; then {own}"
    if config["init_encoder"] is not None:
        return (
            f"{own}; its encoder is that of other weights ({read_checkpoint(Path(config['init_encoder'])).card.recipe})"
        )
    return own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("name")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the evaluation sets")
    parser.add_argument("--sets", nargs="+", default=["Set5", "Set14", "B100"])
    parser.add_argument("--scales", default="2,3,4")
    parser.add_argument("--jpeg", nargs="*", type=int, default=[], help="also score with LR as JPEG of these qualities")
    arguments = parser.parse_args()

    checkpoint = read_checkpoint(arguments.weights)
    measured = {
        name: found
        for jpeg in (None, *arguments.jpeg)
        for name, found in scores(arguments.weights, arguments.data, arguments.sets, arguments.scales, jpeg).items()
    }
    card = Card(
        name=arguments.name,
        licence=LICENCE,
        data=TRAINING_DATA,
        recipe=recipe(arguments.weights),
        results=measured | {"protocol": str(PROTOCOLS["benchmark"])},
    )
    write_checkpoint(replace(checkpoint, card=card), WEIGHTS / f"{arguments.name}.safetensors")


if __name__ == "__main__":
    main()
