"""Features of a picture, encoded block by block where they are needed, and cached.

Blocks that a window lacks are encoded together, in pieces of at most a few hundred pixels a side. A piece is encoded
from its pixels and the encoder's radius around them, so its features are those of the whole picture, and neighbouring
blocks share the pixels around them.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from srno.field.block_grid import BlockGrid, Piece, Place, area, common, cut_out, grown
from srno.field.encode import encode
from srno.once import Claims
from srno.operator.encoder import radius
from srno.progress import Progress

Value = TypeVar("Value")


class BlockCache(Protocol):
    """Keeps blocks for a while: a later `get` returns the block or None. Threads share it."""

    def get(self, key: Hashable, kind: type[Value], /) -> Value | None:
        """Return the value of a key, or None."""
        ...

    def offer(self, key: Hashable, value: object, size: int, /) -> None:
        """Store a value of `size` bytes if there is room for it."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class BlockFeatures:
    """The features of a picture by blocks. Threads may share it."""

    encoder: nn.Module
    image: Callable[[Piece], Tensor]
    """A piece → its pixels (1, 3, rows, columns) in [-1, 1]."""
    grid: BlockGrid
    cache: BlockCache
    """Keeps the features of blocks under (*key, place); what it drops is encoded again."""
    key: tuple[Hashable, ...]
    claims: Claims
    """Pieces that a thread is computing."""

    def missing(self, piece: Piece) -> list[Place]:
        """The blocks of a piece that are not cached."""
        return [place for place in self.grid.places(piece) if self.cache.get((*self.key, place), Tensor) is None]

    def cost(self, piece: Piece) -> int:
        """Pixels that have to go through the encoder for a piece: those within its radius of the missing blocks."""
        missing = self.missing(piece)
        return area(self._outer(self.grid.hull(missing))) if missing else 0

    def gather(self, part: Piece, progress: Progress | None = None) -> Tensor:
        """Return the features (rows, columns, C) of any rectangle, piece by piece."""
        # Pieces that no other thread is computing come first: waiting is left to the end.
        pieces = sorted(self.grid.cut(part), key=self.claims.__contains__)
        features: Tensor | None = None
        for piece in pieces:
            encoded = self.encode(piece, progress)
            if progress is not None:
                progress(0.0)
            if features is None:
                features = encoded.new_empty(part[2] - part[0], part[3] - part[1], encoded.shape[-1])
            shared = common(piece, part)
            cut_out(features, part, shared).copy_(cut_out(encoded, piece, shared))
        assert features is not None
        return features

    def encode(self, piece: Piece, progress: Progress | None = None) -> Tensor:
        """Return the features (rows, columns, C) of a piece; compute those that are not cached, in one go."""
        with self.claims(piece):  # another thread may be computing them
            known = {place: self.cache.get((*self.key, place), Tensor) for place in self.grid.places(piece)}
            missing = [place for place, block in known.items() if block is None]
            blocks = {place: block for place, block in known.items() if block is not None}
            if missing:
                box = self.grid.hull(missing)
                fresh = self._encode(box, progress)
                for place in missing:
                    block = blocks[place] = cut_out(fresh, box, self.grid.block(place)).clone()
                    self.cache.offer((*self.key, place), block, block.numel() * block.element_size())
        like = next(iter(blocks.values()))
        features = like.new_empty(piece[2] - piece[0], piece[3] - piece[1], like.shape[-1])
        for place, block in blocks.items():
            shared = common(self.grid.block(place), piece)
            cut_out(features, piece, shared).copy_(cut_out(block, self.grid.block(place), shared))
        return features

    @torch.no_grad()
    def _encode(self, box: Piece, progress: Progress | None) -> Tensor:
        """Features (rows, columns, C), computed from the pixels within the encoder's radius."""
        outer = self._outer(box)
        image = self.image(outer).to(next(self.encoder.parameters()).dtype)
        features = encode(self.encoder, image, (image.shape[-2], image.shape[-1]), progress)
        return cut_out(features, outer, box)

    def _outer(self, box: Piece) -> Piece:
        """The pixels that the features of a box depend on."""
        return grown(box, radius(self.encoder), self.grid.size)
