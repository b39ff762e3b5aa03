"""Named sets of flags: `--recipe paper` and `--recipe compact`; flags given beside them win."""

from typing import Any

RECIPES: dict[str, dict[str, Any]] = {
    # Ours, for small budgets: measured on two cores, see docs/training.md.
    "compact": {
        "stages": "48x16x1152",
        "detail": 0.5,
        "warmup": 0.02,
        "constant": 0.6,
        "decay": "linear",
    },
    # The published one, to the letter: on DIV2K's 800 pictures an epoch is 250 steps. Nothing is held out of them.
    "paper": {
        "epochs": 1050.0,
        "hold_out": 0,
        "stages": f"128x64x{128 * 128}",
        "r_min": 1.0,
        "r_max": 4.0,
        "sampling": "random",
        "detail": 0.0,
        "flat": 0.0,
        "degradation": "bicubic",
        "repeat": 20,
        "optimiser": "adam",
        "rate": 4e-4,
        "betas": (0.9, 0.999),
        "weight_decay": 0.0,
        "warmup": 50 / 1050,
        "warmup_from": 0.1,
        "constant": 0.0,
        "decay": "cosine",
        "rate_per_epoch": True,
        "loss": "l1",
        "clip": None,
        "ema": None,
        "precision": "fp32",
        "accumulate": 16,
    },
}
