"""What a model is: frozen records that serve as preset, as argument and as a checkpoint's metadata."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from srno.errors import SRNOError

Lifting: TypeAlias = Literal["interpolation-free", "nearest"]


@dataclass(frozen=True, kw_only=True)
class EDSRConfig:
    """EDSR without batch norm, mean shift and upsampler (Lim et al. 2017)."""

    family: ClassVar[str] = "edsr"
    channels: int = 64
    """Width of every convolution, d_e in the paper."""
    blocks: int = 16
    """Residual blocks."""

    def __post_init__(self) -> None:
        _check_positive(self)


@dataclass(frozen=True, kw_only=True)
class RDNConfig:
    """Residual dense network without upsampler (Zhang et al. 2018)."""

    family: ClassVar[str] = "rdn"
    channels: int = 64
    """G0: width between the blocks and of the output, d_e in the paper."""
    blocks: int = 16
    """D: residual dense blocks."""
    layers: int = 8
    """C: convolutions in a block."""
    growth: int = 64
    """G: channels that each of them adds."""

    def __post_init__(self) -> None:
        _check_positive(self)


EncoderConfig: TypeAlias = EDSRConfig | RDNConfig


@dataclass(frozen=True, kw_only=True)
class SRNOConfig:
    """The Super-Resolution Neural Operator: encoder, lifting, T Galerkin layers, projection."""

    system: ClassVar[str] = "srno"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    lifting: Lifting = "interpolation-free"
    """How z_0 is made; `nearest` is the paper's -i as we read it: nearest neighbour and position embedding."""
    d_z: int = 256
    """Width of the latent function z."""
    heads: int = 16
    """Subspaces of the Galerkin attention."""
    iterations: int = 2
    """T: Galerkin layers."""
    projection_width: int = 256
    """Hidden width of the projection."""

    def __post_init__(self) -> None:
        _check_positive(self)
        if self.lifting not in get_args(Lifting):
            raise SRNOError(f"lifting is {self.lifting!r}; it can be one of {', '.join(get_args(Lifting))}")
        if self.d_z % self.heads or self.d_z // self.heads < 2:
            raise SRNOError(
                f"d_z {self.d_z} cannot be cut into {self.heads} heads of two or more channels; change d_z or heads"
            )

    @property
    def head_width(self) -> int:
        return self.d_z // self.heads


ModelConfig: TypeAlias = SRNOConfig

_ENCODERS: dict[str, type[EDSRConfig] | type[RDNConfig]] = {"edsr": EDSRConfig, "rdn": RDNConfig}
_SYSTEMS: dict[str, type[ModelConfig]] = {"srno": SRNOConfig}


def _check_positive(config: Any) -> None:
    for entry in fields(config):
        value = getattr(config, entry.name)
        if entry.type in (int, "int") and (not isinstance(value, int) or value < 1):
            raise SRNOError(f"{entry.name} is {value!r}; it must be a whole number of at least 1")


def config_to_dict(config: ModelConfig) -> dict[str, Any]:
    """Plain data that `config_from_dict` turns back into an equal config."""
    return asdict(config) | {
        "system": config.system,
        "encoder": asdict(config.encoder) | {"family": config.encoder.family},
    }


def config_from_dict(data: dict[str, Any]) -> ModelConfig:
    """The inverse of `config_to_dict`; unknown systems, families and fields are refused by name."""
    rest = dict(data)
    encoder = dict(rest.pop("encoder"))
    make_encoder = _choose(_ENCODERS, encoder.pop("family", None), "encoder family")
    make_system = _choose(_SYSTEMS, rest.pop("system", None), "system")
    try:
        return make_system(encoder=make_encoder(**encoder), **rest)
    except TypeError as error:
        raise SRNOError(f"model config does not fit this version of srno: {error}") from None


def _choose(table: dict[str, Any], key: object, what: str) -> Any:
    if key not in table:
        raise SRNOError(f"unknown {what} {key!r}; known: {', '.join(table)}")
    return table[str(key)]


def _with_variants(name: str, base: SRNOConfig) -> dict[str, SRNOConfig]:
    """A preset and the paper's ablations of it (table 4), by their one-letter suffixes."""
    return {
        name: base,
        f"{name}-i": replace(base, lifting="nearest"),
        f"{name}-h": replace(base, heads=8),
        f"{name}-w": replace(base, d_z=128),
        f"{name}-l": replace(base, iterations=1),
    }


PRESETS: dict[str, ModelConfig] = (
    _with_variants("edsr-baseline", SRNOConfig())
    | _with_variants("rdn", SRNOConfig(encoder=RDNConfig()))
    | {"light": SRNOConfig(encoder=EDSRConfig(channels=48, blocks=12), d_z=128, heads=8, projection_width=128)}
)


def preset(name: str) -> ModelConfig:
    """The config of a named preset."""
    if name not in PRESETS:
        raise SRNOError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
