"""Scaled training: recipes of TransformerEngine, torchao, DeepSeek and OCP as data, and the products that they make of numbers.

>>> from softfloat.scaling import RECIPES
>>> nvfp4 = RECIPES["nvfp4"]
>>> nvfp4.forward.second.scaling.block, nvfp4.input_gradient.first.rounding.name, nvfp4.weight_gradient.first.hadamard is not None
((16, 16), 'STOCHASTIC', True)
"""

from softfloat.scaling import convolutions, hadamard, libraries, products, recipes, tables, tensors
from softfloat.scaling.convolutions import *
from softfloat.scaling.hadamard import *
from softfloat.scaling.libraries import *
from softfloat.scaling.products import *
from softfloat.scaling.recipes import *
from softfloat.scaling.tables import *
from softfloat.scaling.tensors import *

__all__: list[str] = []
__all__ += recipes.__all__
__all__ += tables.__all__
__all__ += hadamard.__all__
__all__ += tensors.__all__
__all__ += products.__all__
__all__ += convolutions.__all__
__all__ += libraries.__all__
