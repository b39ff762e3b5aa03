"""Train a small operator on a folder of pictures in five minutes, watch it learn, and enlarge a picture with it.

    python examples/train_in_five_minutes.py FOLDER [RUN] [MINUTES]

Twenty pictures of 300 pixels or more per side are enough to see how it works; a useful model takes hours. RUN is the
folder of the run (runs/five-minutes unless given); start the same command again to resume a run that was stopped.
"""

import sys
from pathlib import Path
from typing import Any

from PIL import Image

import srno

PICTURE = Path(srno.__file__).parent / "examples" / "coffee.png"


def report(event: dict[str, Any]) -> None:
    """Print the validations: mean PSNR at ×2, ×3 and ×4 on pictures that are not trained on."""
    match event["event"]:
        case "validation":
            print(f"step {event['step']:5}: {event['mean']:.2f} dB after {event['seconds'] / 60:.1f} minutes")
        case "skipped":
            print(f"left out {event['path']}: {event['reason']}")
        case _:
            pass


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.exit(__doc__)
    run = Path(arguments[1] if len(arguments) > 1 else "runs/five-minutes")
    minutes = float(arguments[2]) if len(arguments) > 2 else 5.0
    config = srno.TrainConfig(
        data=(Path(arguments[0]),),
        preset="light",
        minutes=minutes,
        stages="32x8x512",  # 8 patches of 32² pixels, 512 points of each
        hold_out=4,  # pictures to validate on
        detail=0.5,
        loss="rms",
        validate_minutes=max(0.1, minutes / 8),
        allow_small=True,
    )
    weights = srno.train(config, run, report=report)
    model = srno.load(weights)
    large = srno.upscale(Image.open(PICTURE), scale=3, model=model)
    large.save(run / "coffee_3x.png")
    print(f"{weights}\n{run / 'coffee_3x.png'}")


if __name__ == "__main__":
    main(sys.argv[1:])
