"""Our checkpoint format: safetensors, with the config and a card as JSON in its metadata."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from srno.checkpoints.build import create_model
from srno.config import CustomEncoderConfig, ModelConfig, config_from_dict, config_to_dict
from srno.errors import SRNOError
from srno.files import write_atomically
from srno.operator.encoder import describe_encoder, missing_encoder_message
from srno.operator.model import Model

STORED_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Dtypes that tensors may be stored as."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """Model card: licence, training data, recipe and results.

    >>> import srno
    >>> srno.Card(name="mine", data="twenty pictures of my garden").licence
    'unknown'
    """

    name: str
    licence: str = "unknown"
    data: str = "unknown"
    """Training pictures and their licences."""
    recipe: str = "unknown"
    """How they were trained: command, hours, machine."""
    results: dict[str, Any] = field(default_factory=dict[str, Any])
    """Measured results: {set: {scale: PSNR}} and the protocol they were measured under."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A model as data: its config, its tensors under our names, and its card."""

    config: ModelConfig
    state: dict[str, Tensor]
    card: Card

    def model(self, encoder: nn.Module | None = None) -> Model:
        """Build the model in evaluation mode, in fp32 or in the precision of the file if that is higher.

        `encoder` is the custom encoder if the config names one; its weights are replaced by those of the file.
        """
        self._check_encoder(encoder)
        with torch.device("meta"):
            model = create_model(self.config, encoder=encoder)
        wide = {
            name: tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for name, tensor in self.state.items()
        }
        try:
            model.load_state_dict(wide, assign=True)
        except RuntimeError as error:  # tensors of built-in encoders were checked when the file was read
            raise SRNOError(f"encoder: the weights do not fit it ({' '.join(str(error).split())})") from None
        return model.requires_grad_(True).eval()

    def _check_encoder(self, encoder: nn.Module | None) -> None:
        config = self.config.encoder
        if not isinstance(config, CustomEncoderConfig):
            if encoder is not None:
                raise SRNOError(f"encoder: this model has a built-in encoder, {config.family}; leave encoder out")
        elif encoder is None:
            raise SRNOError(missing_encoder_message(config.module))
        elif (found := describe_encoder(encoder)) != config:
            raise SRNOError(
                f"encoder: this model needs {config.module} with {config.channels} channels and radius "
                f"{config.radius}; {found.module} has {found.channels} and {found.radius}"
            )


def check_state(config: ModelConfig, state: dict[str, Tensor], source: object) -> None:
    """Raise an SRNOError that names the first tensor that does not fit the config."""
    with torch.device("meta"):
        expected = create_model(config).state_dict()
    if isinstance(config.encoder, CustomEncoderConfig):  # its tensors are checked when the encoder is passed
        state = {name: tensor for name, tensor in state.items() if not name.startswith("encoder.")}
    for name in sorted(expected.keys() - state.keys()):
        raise SRNOError(f"{source}: tensor {name} is missing")
    for name in sorted(state.keys() - expected.keys()):
        raise SRNOError(f"{source}: unknown tensor {name}")
    for name, tensor in state.items():
        if tensor.shape != expected[name].shape:
            raise SRNOError(
                f"{source}: tensor {name} has shape {tuple(tensor.shape)}, expected {tuple(expected[name].shape)}"
            )
        if tensor.dtype not in STORED_DTYPES or tensor.layout != torch.strided or tensor.is_meta:
            kind = f"{tensor.dtype} ({tensor.layout}, {tensor.device})"
            raise SRNOError(f"{source}: tensor {name} holds {kind}, expected plain floats of 16 to 64 bits")


def write_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write a checkpoint atomically: a failure leaves no partial file."""
    check_state(checkpoint.config, checkpoint.state, path)
    # safetensors stores metadata in an unordered map: a single entry gives the same bytes every time.
    about = {"config": config_to_dict(checkpoint.config), "card": asdict(checkpoint.card)}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.state.items()}
    try:
        write_atomically(path, save(tensors, metadata={"srno": json.dumps(about, sort_keys=True)}))
    except OSError as error:
        raise SRNOError(f"{path}: cannot be written ({error.strerror})") from None


def _parse_metadata(path: Path, metadata: dict[str, str] | None) -> tuple[ModelConfig, Card]:
    if not metadata or "srno" not in metadata:
        raise SRNOError(f"{path}: a safetensors file that srno did not write (no config in its metadata)")
    try:
        about = json.loads(metadata["srno"])
        known = {entry.name for entry in fields(Card)}
        card = Card(**{name: value for name, value in about["card"].items() if name in known})
        return config_from_dict(about["config"]), card
    except SRNOError as error:
        raise SRNOError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise SRNOError(f"{path}: broken metadata ({type(error).__name__}: {error})") from None


def read_metadata(path: Path) -> tuple[ModelConfig, Card]:
    """Read the config and the card, without the tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            return _parse_metadata(path, file.metadata())
    except (SafetensorError, OSError) as error:
        raise SRNOError(f"{path}: not a readable safetensors file ({error})") from None


def read_native(path: Path) -> Checkpoint:
    """Read and check a file of our format."""
    try:
        with safe_open(path, framework="pt") as file:
            config, card = _parse_metadata(path, file.metadata())
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise SRNOError(f"{path}: not a readable safetensors file ({error})") from None
    check_state(config, state, path)
    return Checkpoint(config=config, state=state, card=card)
