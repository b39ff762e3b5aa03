"""Measure a training step: speed relative to the textbook and to the machine's matrix-product rate.

    python benchmarks/training.py                              light and edsr-baseline, about three minutes on two cores
    python benchmarks/training.py --presets light --rounds 10

Each variant runs in a separate process, since the trainer changes how memory is allocated and the textbook does not.
Convolutions are the same work in both, so the table also has the encoder alone: it bounds the gain of the decoder's
algebra.
Variants are interleaved and the best of all rounds counts, so that other load affects all of them equally.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from srno.data.dataset import Sample
from srno.machine import keep_freed_memory
from srno.training.config import Precision, TrainConfig
from srno.training.distributed import World
from srno.training.learner import Learner
from srno.training.loop import Objective, gradient
from srno.training.stages import Stage, parse_stages

STAGES = {"light": "48x16x1152", "edsr-baseline": "48x4x2304"}
SINGLE_PROCESS = World(0, 1, torch.device("cpu"))


@dataclass(frozen=True)
class Variant:
    """A variant of the training step."""

    title: str
    precision: Precision = "fp32"
    textbook: bool = False
    keep_memory: bool = True
    optimise: bool = False
    encoder_only: bool = False


VARIANTS = {
    "textbook": Variant("textbook forward and backward", textbook=True, keep_memory=False),
    "textbook-kept": Variant("the same, freed memory kept", textbook=True),
    "textbook-encoder": Variant("its encoder alone", textbook=True, keep_memory=False, encoder_only=True),
    "fp32": Variant("srno, fp32"),
    "encoder": Variant("its encoder alone", encoder_only=True),
    "bf16": Variant("srno, bf16", precision="bf16"),
    "whole": Variant("srno, bf16, with Muon, clipping and EMA", precision="bf16", optimise=True),
}
PRODUCTS = {"product-fp32": torch.float32, "product-bf16": torch.bfloat16}


def make_batch(stage: Stage) -> Sample:
    """A batch of noise with the shapes of a stage."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return 2 * torch.rand(shape, generator=generator) - 1

    count, patch, points = stage.batch, stage.patch, stage.points
    return Sample(noise(count, 3, patch, patch), noise(count, points, 2), torch.ones(count, 2), noise(count, points, 3))


def make_step(variant: Variant, name: str) -> Callable[[], object]:
    """The step of a variant, as a function."""
    stages = STAGES.get(name, STAGES["light"])
    config = TrainConfig(data=(Path(),), preset=name, steps=1, stages=stages, precision=variant.precision)
    learner, batch = Learner.begin(config, SINGLE_PROCESS.device), make_batch(parse_stages(stages)[0][1])
    objective = Objective(learner.model)

    def textbook() -> None:
        lr, coords, cell, target = batch
        learner.model.zero_grad(set_to_none=True)
        F.l1_loss(learner.model.reference(lr, coords, cell), target).backward()

    def encoder() -> None:
        layout = torch.contiguous_format if variant.textbook else torch.channels_last
        learner.model.zero_grad(set_to_none=True)
        learner.model.encoder(batch.lr.contiguous(memory_format=layout)).mean().backward()

    def engine() -> None:
        loss, _ = gradient(objective, batch, config, "l1", SINGLE_PROCESS)
        if variant.optimise:
            learner.update(loss)

    if variant.encoder_only:
        return encoder
    return textbook if variant.textbook else engine


def make_product(dtype: torch.dtype) -> Callable[[], object]:
    """A matrix product that is large enough to reach the peak rate."""
    a, b, out = (torch.ones(2048, 2048, dtype=dtype) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def work(name: str, variant: str, threads: int) -> None:
    """Run one step or product per line of standard input, and print its seconds."""
    torch.set_num_threads(threads)
    if variant in VARIANTS and VARIANTS[variant].keep_memory:
        keep_freed_memory()
    step = make_product(PRODUCTS[variant]) if variant in PRODUCTS else make_step(VARIANTS[variant], name)
    step()
    print(flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


class Worker:
    """A process that does a step on request."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin
        assert self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout

    def wait(self) -> None:
        """Wait until it is ready."""
        self.output.readline()

    def step(self) -> float:
        """Seconds of a step."""
        self.input.write("go\n")
        self.input.flush()
        return float(self.output.readline())


def measure(name: str, rounds: int, threads: int) -> dict[str, float]:
    """Best seconds of each variant."""
    command = [sys.executable, __file__, "--threads", str(threads), "--presets", name, "--work"]
    workers = {variant: Worker([*command, variant]) for variant in (*VARIANTS, *PRODUCTS)}
    best = dict.fromkeys(workers, float("inf"))
    for worker in workers.values():
        worker.wait()
    for _ in range(rounds):
        for variant, worker in workers.items():
            for _ in range(2 if variant in VARIANTS else 8):
                best[variant] = min(best[variant], worker.step())
    for worker in workers.values():
        worker.process.communicate()
    return best


def count_flops(variant: Variant, name: str) -> float:
    """2 × multiply-adds of all products of a step, forward and backward."""
    step = make_step(variant, name)
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


def report(name: str, rounds: int, threads: int) -> None:
    """Print the table of a preset."""
    stage = parse_stages(STAGES.get(name, STAGES["light"]))[0][1]
    best = measure(name, rounds, threads)
    peak = {variant.removeprefix("product-"): 2 * 2048**3 / best[variant] for variant in PRODUCTS}
    print(f"\n{name}, {stage.patch}² patches, batch {stage.batch}, {stage.points} points, {threads} threads;", end=" ")
    print(", ".join(f"peak {rate / 1e9:.0f} GFLOP/s in {precision}" for precision, rate in peak.items()))
    print(f"{'':40}  s/step  times textbook  LR pixels/s  GFLOP  share of peak")
    for key, variant in VARIANTS.items():
        flops = count_flops(variant, name)
        pixels = stage.batch * stage.patch**2 / best[key]
        share = flops / best[key] / peak[variant.precision]
        times = best["textbook-encoder" if variant.encoder_only else "textbook"] / best[key]
        print(
            f"{variant.title:40}  {best[key]:6.3f}  {times:14.2f}  {pixels:11,.0f}  {flops / 1e9:5.0f}  {share:13.0%}"
        )
    decoder = (best["textbook"] - best["textbook-encoder"]) / (best["fp32"] - best["encoder"])
    print(f"without the encoder, in fp32: {decoder:.2f} times as fast as the textbook")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=list(STAGES))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.presets[0], arguments.work, arguments.threads)
        return
    for name in arguments.presets:
        report(name, arguments.rounds, arguments.threads)


if __name__ == "__main__":
    main()
