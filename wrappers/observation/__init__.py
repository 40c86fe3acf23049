"""What an agent sees: observations that are masked, flat, or masked as a learner decides."""

from wrappers.observation.flat import (
    KINDS,
    Encoding,
    FlatObservation,
    FlatVectorObservation,
    FlatWrapper,
)
from wrappers.observation.learned import LearnedMask
from wrappers.observation.masked import (
    MaskedObservation,
    MaskedVectorObservation,
    MaskWrapper,
)
from wrappers.observation.remasking import RemaskingObservation
from wrappers.observation.wrapper_layers import layers

__all__ = [
    "KINDS",
    "Encoding",
    "FlatObservation",
    "FlatVectorObservation",
    "FlatWrapper",
    "LearnedMask",
    "MaskWrapper",
    "MaskedObservation",
    "MaskedVectorObservation",
    "RemaskingObservation",
    "layers",
]
