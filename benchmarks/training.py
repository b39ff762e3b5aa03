"""How fast a training step is: against the textbook, and against what the machine can multiply.

    python benchmarks/training.py                              light and edsr-baseline, about three minutes on two cores
    python benchmarks/training.py --presets light --rounds 10

Each way runs in a process of its own, since the trainer changes how memory is allocated and the textbook does not.
Convolutions are the same work in both, so the table has the encoder alone as well: it bounds what the decoder's
algebra can give.
The ways take turns and the best of all rounds counts, so that a busy machine hurts all alike.
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
from srno.training.config import TrainConfig
from srno.training.distributed import World
from srno.training.learner import Learner
from srno.training.stages import Stage, parse_stages
from srno.training.step import Objective, gradient, keep_freed_memory

STAGES = {"light": "48x16x1152", "edsr-baseline": "48x4x2304"}
ALONE = World(0, 1, torch.device("cpu"))


@dataclass(frozen=True)
class Way:
    """A way to do a step."""

    title: str
    precision: str = "fp32"
    textbook: bool = False
    keep_memory: bool = True
    optimise: bool = False
    encoder_only: bool = False


WAYS = {
    "textbook": Way("textbook forward and backward", textbook=True, keep_memory=False),
    "textbook-kept": Way("the same, freed memory kept", textbook=True),
    "textbook-encoder": Way("its encoder alone", textbook=True, keep_memory=False, encoder_only=True),
    "fp32": Way("srno, fp32"),
    "encoder": Way("its encoder alone", encoder_only=True),
    "bf16": Way("srno, bf16", precision="bf16"),
    "whole": Way("srno, bf16, with Muon, clipping and EMA", precision="bf16", optimise=True),
}
PRODUCTS = {"product-fp32": torch.float32, "product-bf16": torch.bfloat16}


def make_batch(stage: Stage) -> Sample:
    """Noise of the right shapes."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return 2 * torch.rand(shape, generator=generator) - 1

    count, patch, points = stage.batch, stage.patch, stage.points
    return Sample(noise(count, 3, patch, patch), noise(count, points, 2), torch.ones(count, 2), noise(count, points, 3))


def make_step(way: Way, name: str) -> Callable[[], object]:
    """The step as a function."""
    stages = STAGES.get(name, STAGES["light"])
    config = TrainConfig(data=(Path(),), preset=name, steps=1, stages=stages, precision=way.precision)
    learner, batch = Learner.begin(config, ALONE.device), make_batch(parse_stages(stages)[0])
    objective = Objective(learner.model)

    def textbook() -> None:
        lr, coords, cell, target = batch
        learner.model.zero_grad(set_to_none=True)
        F.l1_loss(learner.model.reference(lr, coords, cell), target).backward()

    def encoder() -> None:
        layout = torch.contiguous_format if way.textbook else torch.channels_last
        learner.model.zero_grad(set_to_none=True)
        learner.model.encoder(batch.lr.contiguous(memory_format=layout)).mean().backward()

    def ours() -> None:
        loss, _ = gradient(objective, batch, config, "l1", ALONE)
        if way.optimise:
            learner.update(loss)

    if way.encoder_only:
        return encoder
    return textbook if way.textbook else ours


def make_product(dtype: torch.dtype) -> Callable[[], object]:
    """A matrix product that is large enough to be as fast as they get."""
    a, b, out = (torch.ones(2048, 2048, dtype=dtype) for _ in range(3))
    return lambda: torch.mm(a, b, out=out)


def work(name: str, way: str, threads: int) -> None:
    """A process that does a step, or a few products, whenever it is asked to, and answers with the seconds."""
    torch.set_num_threads(threads)
    if way in WAYS and WAYS[way].keep_memory:
        keep_freed_memory()
    step = make_product(PRODUCTS[way]) if way in PRODUCTS else make_step(WAYS[way], name)
    step()
    print(flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        step()
        print(time.perf_counter() - start, flush=True)


def measure(name: str, rounds: int, threads: int) -> dict[str, float]:
    """Best seconds of every way."""
    command = [sys.executable, __file__, "--threads", str(threads), "--presets", name, "--work"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = {way: subprocess.Popen([*command, way], **pipes) for way in (*WAYS, *PRODUCTS)}
    best = dict.fromkeys(workers, float("inf"))
    for worker in workers.values():
        worker.stdout.readline()
    for _ in range(rounds):
        for way, worker in workers.items():
            for _ in range(2 if way in WAYS else 8):
                worker.stdin.write("go\n")
                worker.stdin.flush()
                best[way] = min(best[way], float(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    return best


def count_flops(way: Way, name: str) -> float:
    """2 × multiply-adds of all products of a step, forward and backward."""
    step = make_step(way, name)
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


def report(name: str, rounds: int, threads: int) -> None:
    """Print a table."""
    stage = parse_stages(STAGES.get(name, STAGES["light"]))[0]
    best = measure(name, rounds, threads)
    peak = {way.removeprefix("product-"): 2 * 2048**3 / best[way] for way in PRODUCTS}
    print(f"\n{name}, {stage.patch}² patches, batch {stage.batch}, {stage.points} points, {threads} threads;", end=" ")
    print(", ".join(f"peak {rate / 1e9:.0f} GFLOP/s in {precision}" for precision, rate in peak.items()))
    print(f"{'':40}  s/step  times textbook  LR pixels/s  GFLOP  share of peak")
    for key, way in WAYS.items():
        flops = count_flops(way, name)
        pixels = stage.batch * stage.patch**2 / best[key]
        share = flops / best[key] / peak[way.precision]
        times = best["textbook-encoder" if way.encoder_only else "textbook"] / best[key]
        print(f"{way.title:40}  {best[key]:6.3f}  {times:14.2f}  {pixels:11,.0f}  {flops / 1e9:5.0f}  {share:13.0%}")
    decoder = (best["textbook"] - best["textbook-encoder"]) / (best["fp32"] - best["encoder"])
    print(f"what is not encoder, in fp32: {decoder:.2f} times as fast as the textbook's")


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
