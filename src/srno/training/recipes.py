"""Named sets of training settings: ours, and those with which SRNO and the others were published."""

from typing import Any

_PUBLISHED: dict[str, Any] = {
    "hold_out": 0,
    "r_min": 1.0,
    "r_max": 4.0,
    "sampling": "random",
    "detail": 0.0,
    "flat": 0.0,
    "degradation": "bicubic",
    "repeat": 20,
    "optimiser": "adam",
    "betas": (0.9, 0.999),
    "weight_decay": 0.0,
    "constant": 0.0,
    "rate_per_epoch": True,
    "loss": "l1",
    "clip": None,
    "ema": None,
    "skip_spikes": False,
    "precision": "fp32",
}
"""What the published recipes have in common. On DIV2K's 800 pictures an epoch is 16,000 samples."""

_RIVALS: dict[str, Any] = _PUBLISHED | {
    "epochs": 1000.0,
    "stages": f"48x16x{48 * 48}",
    "rate": 1e-4,
    "warmup": 0.0,
    "warmup_from": 0.0,
    "decay": "step",
    "halve_at": (0.2, 0.4, 0.6, 0.8),
}
"""The recipe with which LIIF, LTE and MetaSR were published: 1e-4, halved at 200, 400, 600 and 800 of 1000 epochs."""

RECIPES: dict[str, dict[str, Any]] = {
    # Ours, for small budgets: the defaults of TrainConfig, measured on two cores, see docs/training.md.
    "compact": {},
    # SRNO as published: 250 steps an epoch. The paper's text has 1000 epochs, the published configuration 1050: 50 of
    # warm-up and 1000 of cosine decay. This is the configuration, since that is what the public code runs; read so,
    # the 1000 epochs of the text are the decay.
    "paper": _PUBLISHED
    | {
        "epochs": 1050.0,
        "stages": f"128x64x{128 * 128}",
        "rate": 4e-4,
        "warmup": 50 / 1050,
        "warmup_from": 0.1,
        "decay": "cosine",
        "accumulate": 16,
    },
    "liif": _RIVALS,
    "lte": _RIVALS,
    "metasr": _RIVALS,
}
"""Named sets of flags, such as `--recipe paper`; explicit flags override them."""
