"""Model configs: frozen dataclasses that serve as presets, as arguments and as checkpoint metadata."""

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from srno.errors import SRNOError

Lifting: TypeAlias = Literal["interpolation-free", "nearest"]


class _Checked:
    """Base of all configs: every integer field is a size or a count, at least 1."""

    @property
    def only_scale(self) -> int | None:
        """The only scale factor that the system supports; None if it supports any."""
        return None

    def __post_init__(self) -> None:
        for entry in fields(cast(Any, self)):
            value = getattr(self, entry.name)
            if entry.name == "encoder" and not isinstance(value, EncoderConfig):
                raise SRNOError(f"encoder is {value!r}; give an EDSRConfig or an RDNConfig")
            if entry.type in (int, "int") and (type(value) is not int or value < 1):
                raise SRNOError(f"{entry.name} is {value!r}; it must be a whole number of at least 1")


@dataclass(frozen=True, kw_only=True)
class EDSRConfig(_Checked):
    """EDSR without batch norm, mean shift and upsampler (Lim et al. 2017): (B, 3, h, w) → (B, channels, h, w).

    >>> import srno
    >>> srno.EDSRConfig(blocks=4)
    EDSRConfig(channels=64, blocks=4)
    """

    family: ClassVar[str] = "edsr"
    channels: int = 64
    """Width of every convolution, d_e in the paper."""
    blocks: int = 16
    """Residual blocks."""


@dataclass(frozen=True, kw_only=True)
class RDNConfig(_Checked):
    """Residual dense network without upsampler (Zhang et al. 2018): (B, 3, h, w) → (B, channels, h, w).

    >>> import srno
    >>> srno.SRNOConfig(encoder=srno.RDNConfig(blocks=8)).encoder.blocks
    8
    """

    family: ClassVar[str] = "rdn"
    channels: int = 64
    """G0: width between the blocks and of the output, d_e in the paper."""
    blocks: int = 16
    """D: residual dense blocks."""
    layers: int = 8
    """C: convolutions in a block."""
    growth: int = 64
    """G: channels that each of them adds."""


@dataclass(frozen=True, kw_only=True)
class CustomEncoderConfig(_Checked):
    """A custom encoder, recorded by its class. The class is never imported: the caller of `load` passes an instance."""

    family: ClassVar[str] = "own"
    module: str
    """Where the class is defined, as module:Class."""
    channels: int
    """Width of its features, d_e in the paper."""
    radius: int
    """Pixels beyond a window that its features depend on."""


EncoderConfig: TypeAlias = EDSRConfig | RDNConfig | CustomEncoderConfig


@dataclass(frozen=True, kw_only=True)
class SRNOConfig(_Checked):
    """The Super-Resolution Neural Operator: encoder, lifting, T Galerkin layers, projection.

    >>> import srno
    >>> srno.create_model(srno.SRNOConfig(d_z=32, heads=2, iterations=1)).config.d_z
    32
    """

    system: ClassVar[str] = "srno"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    lifting: Lifting = "interpolation-free"
    """How z_0 is computed; `nearest` is our reading of the paper's -i: nearest neighbour and position embedding."""
    d_z: int = 256
    """Width of the latent function z."""
    heads: int = 16
    """Subspaces of the Galerkin attention."""
    iterations: int = 2
    """T: Galerkin layers."""
    projection_width: int = 256
    """Hidden width of the projection."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lifting not in get_args(Lifting):
            raise SRNOError(f"lifting is {self.lifting!r}; choose one of {', '.join(get_args(Lifting))}")
        if self.d_z % self.heads or self.d_z // self.heads < 2:
            raise SRNOError(
                f"d_z {self.d_z} cannot be split into {self.heads} heads of two or more channels; change d_z or heads"
            )

    @property
    def head_width(self) -> int:
        return self.d_z // self.heads

    def with_encoder(self, encoder: EncoderConfig) -> "SRNOConfig":
        """Return the same config with another encoder."""
        return replace(self, encoder=encoder)


@dataclass(frozen=True, kw_only=True)
class LIIFConfig(_Checked):
    """Local implicit image function (Chen et al. 2021): unfolding, cell decoding and local ensemble all on."""

    system: ClassVar[str] = "liif"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    width: int = 256
    """Hidden width of the perceptron."""
    depth: int = 4
    """Hidden layers of the perceptron."""


@dataclass(frozen=True, kw_only=True)
class LTEConfig(_Checked):
    """Local texture estimator (Lee and Jin 2022); LTE+ is the same model, evaluated over maps."""

    system: ClassVar[str] = "lte"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    frequencies: int = 128
    """Frequencies F_j that are estimated for each pixel."""
    width: int = 256
    """Hidden width of the perceptron."""
    depth: int = 3
    """Hidden layers of the perceptron."""


@dataclass(frozen=True, kw_only=True)
class MetaSRConfig(_Checked):
    """Meta-SR (Hu et al. 2019), as reimplemented for the comparison in the LIIF paper."""

    system: ClassVar[str] = "metasr"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    width: int = 256
    """Hidden width of the network that predicts the filters."""


@dataclass(frozen=True, kw_only=True)
class MLPConfig(_Checked):
    """The MLP of the paper's sampling ablation. Its size is unpublished; this is our reading of it."""

    system: ClassVar[str] = "mlp"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    width: int = 256
    """Hidden width of the perceptron."""
    depth: int = 4
    """Hidden layers of the perceptron; the first is the lifting of the -i variant."""


@dataclass(frozen=True, kw_only=True)
class FixedScaleConfig(_Checked):
    """EDSR or RDN as published: an encoder and a pixel-shuffle tail for one integer factor."""

    system: ClassVar[str] = "fixed"
    encoder: EncoderConfig = field(default_factory=EDSRConfig)
    scale: int = 2
    """The factor: 2, 3 or 4."""
    mean_shift: bool = False
    """Whether the encoder first subtracts a mean colour, as in the original EDSR files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale not in (2, 3, 4):
            raise SRNOError(f"scale is {self.scale}; fixed-scale networks exist for 2, 3 and 4")
        if self.mean_shift and not isinstance(self.encoder, EDSRConfig):
            raise SRNOError("mean_shift is on; only EDSR has a mean shift")

    @property
    def only_scale(self) -> int | None:
        """The scale factor of the network."""
        return self.scale


ModelConfig: TypeAlias = SRNOConfig | LIIFConfig | LTEConfig | MetaSRConfig | MLPConfig | FixedScaleConfig

_ENCODERS: dict[str, type[EncoderConfig]] = {make.family: make for make in (EDSRConfig, RDNConfig, CustomEncoderConfig)}
_SYSTEMS: dict[str, type[ModelConfig]] = {
    make.system: make for make in (SRNOConfig, LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig, FixedScaleConfig)
}


def config_to_dict(config: ModelConfig) -> dict[str, Any]:
    """Return plain data that `config_from_dict` converts back into an equal config."""
    return asdict(config) | {
        "system": config.system,
        "encoder": asdict(config.encoder) | {"family": config.encoder.family},
    }


def config_from_dict(data: dict[str, Any]) -> ModelConfig:
    """Invert `config_to_dict`; raise an SRNOError that names an unknown system, family or field."""
    rest = dict(data)
    encoder = rest.pop("encoder", None)
    if not isinstance(encoder, dict):
        raise SRNOError(f"model config has the encoder {encoder!r}; it must be a table with a family")
    encoder = dict(cast(dict[str, Any], encoder))
    make_encoder = _choose(_ENCODERS, encoder.pop("family", None), "encoder family")
    make_system = _choose(_SYSTEMS, rest.pop("system", None), "system")
    try:
        return make_system(encoder=make_encoder(**encoder), **rest)
    except TypeError as error:
        raise SRNOError(f"model config does not fit this version of srno: {error}") from None


def _choose(table: dict[str, Any], key: object, what: str) -> Any:
    if not isinstance(key, str) or key not in table:
        raise SRNOError(f"unknown {what} {key!r}; known: {', '.join(table)}")
    return table[key]


def _with_variants(name: str, base: SRNOConfig) -> dict[str, SRNOConfig]:
    """A preset and the paper's ablations of it (table 4): nearest pixel, half the heads, half of d_z, one layer."""
    return {
        name: base,
        f"{name}-i": replace(base, lifting="nearest"),
        f"{name}-h": replace(base, heads=base.heads // 2),
        f"{name}-w": replace(base, d_z=base.d_z // 2),
        f"{name}-l": replace(base, iterations=1),
    }


def _rivals(name: str, encoder: EncoderConfig) -> dict[str, ModelConfig]:
    """The other decoders at their published sizes, on the encoder of preset `name`."""
    systems = (LIIFConfig, LTEConfig, MetaSRConfig, MLPConfig)
    return {f"{make.system}/{name}": make(encoder=encoder) for make in systems}


def _fixed_scales(encoder: EncoderConfig) -> dict[str, ModelConfig]:
    return {f"{encoder.family}/x{scale}": FixedScaleConfig(encoder=encoder, scale=scale) for scale in (2, 3, 4)}


_LIGHT = SRNOConfig(encoder=EDSRConfig(channels=48, blocks=12), d_z=48, heads=3, projection_width=48)

PRESETS: dict[str, ModelConfig] = {
    **_with_variants("edsr-baseline", SRNOConfig()),
    **_with_variants("rdn", SRNOConfig(encoder=RDNConfig())),
    **_with_variants("light", _LIGHT),
    **_rivals("edsr-baseline", EDSRConfig()),
    **_rivals("rdn", RDNConfig()),
    **_rivals("light", _LIGHT.encoder),
    **_fixed_scales(EDSRConfig()),
    **_fixed_scales(RDNConfig()),
}


def preset(name: str) -> ModelConfig:
    """Return the config of a named preset.

    >>> import srno
    >>> srno.preset("edsr-baseline").encoder
    EDSRConfig(channels=64, blocks=16)
    """
    if name not in PRESETS:
        raise SRNOError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
