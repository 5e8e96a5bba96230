"""Training on PyTorch in emulated arithmetic: every product, cast, elementwise operation and update of half and bfloat16 tensors.

`emulate` is a context manager. Within it, operators on native `torch.float16` and `torch.bfloat16` tensors, those of the
backward pass and of optimisers included, compute with `softfloat.bits`; float32 tensors compute as ever. Models,
optimisers, `torch.autocast` and `.half()` need no change.

>>> import torch
>>> import softfloat
>>> from softfloat.torch import emulate
>>> x = torch.tensor([60000.0, 1.0], dtype=torch.float16)
>>> with emulate(softfloat.Environment(overflow="saturate")) as emulation:
...     y = x + x
>>> y.tolist(), str(emulation.environment.status)
([65504.0, 2.0], 'OFLO 0x1 DIV0 0x0 INV 0x0')
"""

_NEEDED = "softfloat.torch needs PyTorch 2.6 or later; pip install 'numba-softfloat[torch]' brings it"
try:
    import torch as _torch
except ImportError as missing:
    raise ImportError(_NEEDED) from missing
if tuple(int(part) for part in _torch.__version__.split(".")[:2]) < (2, 6):
    raise ImportError(f"{_NEEDED}, got {_torch.__version__}")

from softfloat.torch.emulation import UnemulatedOperatorError, emulate  # noqa: E402
from softfloat.torch.operators.devices import DeviceProduct  # noqa: E402
from softfloat.torch.operators.recipes import ScalingReport  # noqa: E402
from softfloat.torch.operators.unit import Operation, OperatorTrap, Tally  # noqa: E402 -- after the check
from softfloat.torch.practices import autocast as autocast  # noqa: E402 -- whose lists the reference names
from softfloat.torch.practices.accumulation import GradientAccumulation  # noqa: E402
from softfloat.torch.practices.amp import (  # noqa: E402
    LEVELS,
    Level,
    TrainingStep,
    TrainOneStepWithLossScale,
    auto_mixed_precision,
    loss_scale_manager,
    to_float,
)
from softfloat.torch.practices.autocast import autocast_lists  # noqa: E402
from softfloat.torch.practices.conversion import Converted, convert  # noqa: E402
from softfloat.torch.practices.inspection import GradientStatistics, Outfeed, gradient_statistics, print_tensor  # noqa: E402
from softfloat.torch.practices.metrics import Accuracy, Loss, Metric  # noqa: E402
from softfloat.torch.practices.parameters import float32_parameters  # noqa: E402
from softfloat.torch.practices.replicas import Replicas  # noqa: E402
from softfloat.torch.practices.scaling import DynamicLossScaleManager, FixedLossScaleManager, GradScaler  # noqa: E402
from softfloat.torch.practices.tracing import name_scope  # noqa: E402
from softfloat.torch.practices.training import (  # noqa: E402
    Callback,
    CallbackParameters,
    InvalidLossError,
    LossMonitor,
    Model,
    RunContext,
)
from softfloat.torch.practices.tuning import (  # noqa: E402
    Finding,
    LossScaleSearch,
    check_hyperparameters,
    find_loss_scale,
    scale_hyperparameters,
)

__all__ = [
    "LEVELS",
    "Accuracy",
    "Callback",
    "CallbackParameters",
    "Converted",
    "DeviceProduct",
    "DynamicLossScaleManager",
    "Finding",
    "FixedLossScaleManager",
    "GradScaler",
    "GradientAccumulation",
    "GradientStatistics",
    "InvalidLossError",
    "Level",
    "Loss",
    "LossMonitor",
    "LossScaleSearch",
    "Metric",
    "Model",
    "Operation",
    "OperatorTrap",
    "Outfeed",
    "Replicas",
    "RunContext",
    "ScalingReport",
    "Tally",
    "TrainOneStepWithLossScale",
    "TrainingStep",
    "UnemulatedOperatorError",
    "auto_mixed_precision",
    "autocast_lists",
    "check_hyperparameters",
    "convert",
    "emulate",
    "find_loss_scale",
    "float32_parameters",
    "gradient_statistics",
    "loss_scale_manager",
    "name_scope",
    "print_tensor",
    "scale_hyperparameters",
    "to_float",
]
