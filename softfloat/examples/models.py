"""The tutorials' models: a residual network, two convolutions with a dense layer, and LeNet-5.

>>> import torch
>>> ResNet(1, channels=3)(torch.zeros(2, 3, 32, 32)).shape
torch.Size([2, 10])
"""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["LeNet5", "ResNet", "TwoConvolutions"]

FILTERS = (16, 32, 64)
EPSILON = 1e-3  # of batch norm in Keras; PyTorch's 1e-5 is subnormal in half


def initialise(model: nn.Module) -> None:
    """Weights as Keras draws them: uniform as Glorot and Bengio have it, no bias."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class Block(nn.Module):
    """Two 3 x 3 convolutions beside the identity; or, where there are more filters than channels, beside one of 2 x 2 with stride 2."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        stride = 1 if channels == filters else 2
        self.conv1 = nn.Conv2d(channels, filters, 3, stride, padding=1)
        self.conv2 = nn.Conv2d(filters, filters, 3, padding=1)
        self.skip = nn.Identity() if channels == filters else nn.Conv2d(channels, filters, 2, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of both ways, rectified."""
        return torch.relu(self.conv2(torch.relu(self.conv1(x))) + self.skip(x))


class ResNet(nn.Module):
    """A residual network for small images, of 6N + 2 layers: a convolution, N blocks each of 16, 32 and 64 filters, an average, a dense layer.

    Batch norm stands before each block, and nowhere within one.

    Parameters
    ----------
    blocks : int
        N.
    channels : int
        Of the images, whose height and width must be multiples of 4.
    classes : int

    Source
    ------
    K. He, X. Zhang, S. Ren, J. Sun, Deep Residual Learning for Image Recognition (arXiv:1512.03385), section 4.2, as
    Graphcore's tutorial varies it.
    """

    def __init__(self, blocks: int, channels: int, classes: int = 10) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, FILTERS[0], 3, padding=1)
        self.blocks = nn.Sequential()
        width = FILTERS[0]
        for filters in FILTERS:
            for _ in range(blocks):
                self.blocks.append(nn.BatchNorm2d(width, eps=EPSILON))
                self.blocks.append(Block(width, filters))
                width = filters
        self.dense = nn.Linear(width, classes)
        initialise(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of shape (images, classes)."""
        scores: torch.Tensor = self.dense(self.blocks(torch.relu(self.first(x))).mean((2, 3)))
        return scores


class TwoConvolutions(nn.Module):
    """Two 3 x 3 convolutions of 32 filters without bias, a rectifier between them and none after, and a dense layer.

    Parameters
    ----------
    channels, height, width : int
        Of the images.
    classes : int
    """

    def __init__(self, channels: int, height: int, width: int, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.dense = nn.Linear(32 * height * width, classes)
        initialise(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of shape (images, classes)."""
        scores: torch.Tensor = self.dense(self.conv2(torch.relu(self.conv1(x))).flatten(1))
        return scores


class LeNet5(nn.Module):
    """Two 5 x 5 convolutions of 6 and 16 filters without bias, each rectified and halved by its maxima, and three dense layers.

    Parameters
    ----------
    channels : int
        Of the images, which have 32 x 32 pixels.
    classes : int

    Notes
    -----
    Weights of dense layers are drawn with a standard deviation of 0.02, as MindSpore's tutorial says. Of convolutions it
    says nothing: they are uniform as He et al. have it, with a = sqrt(5), the default of MindSpore 2 as of PyTorch. In
    MindSpore 1.8, which the tutorial was written for, the default was a standard deviation of 0.01: the first layers then
    pass on so little that ten epochs at the tutorial's learning rate teach the network nothing, in single precision too.

    Source
    ------
    MindSpore, tutorial on mixed precision (r1.8), after Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning
    applied to document recognition (1998).
    """

    def __init__(self, channels: int = 1, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, bias=False)
        self.conv2 = nn.Conv2d(6, 16, 5, bias=False)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)
        for dense in (self.fc1, self.fc2, self.fc3):
            nn.init.normal_(dense.weight, std=0.02)
            nn.init.zeros_(dense.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of shape (images, classes)."""
        for convolution in (self.conv1, self.conv2):
            x = nn.functional.max_pool2d(torch.relu(convolution(x)), 2)
        x = torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1)))))
        scores: torch.Tensor = self.fc3(x)
        return scores
