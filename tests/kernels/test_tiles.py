"""What is around the steps of a tile: in which order tiles come, and what is known of their operands beforehand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from softfloat.kernels import tiles


@pytest.mark.parametrize("size", [1, 100_000, 1 << 16, 1 << 17, 1 << 19])
@pytest.mark.parametrize("across", [1, 2, 4])
@pytest.mark.parametrize("panels", [1, 2, 3, 5, 9])
def test_tiles_follow_each_other_as_they_are_numbered(panels: int, across: int, size: int) -> None:
    """From wherever a thread begins, and from one product to the next; each once."""
    numbered = [tiles.first_of(unit, panels, across, size) for unit in range(3 * panels * across)]
    for start in range(len(numbered)):
        place = numbered[start]
        for expected in numbered[start:]:
            assert place == expected
            place = tiles.next_of(*place, panels, across, tiles.together_of(size))
    assert sorted(x[:3] for x in numbered) == list(itertools.product(range(3), range(panels), range(across)))


@pytest.mark.parametrize("size", [tiles.ROWS, tiles.LANES[np.float32]])
def test_the_least_magnitudes_of_turns(size: int) -> None:
    rng = np.random.default_rng(1)
    panels = rng.standard_normal((200, size)).astype(np.float32) * np.exp2(rng.integers(-149, 127, (200, 1))).astype(
        np.float32
    )
    panels[rng.random(panels.shape) < 0.3] = 0.0
    panels[0], panels[1], panels[2, 1:], panels[3, 0], panels[4] = 0.0, -0.0, 0.0, 2.0**-149, np.float32(3.4028235e38)
    low = np.empty(200, np.float32)
    tiles.least(size)(panels.reshape(-1), low)
    expected = np.where(panels == 0, np.float32(np.inf), abs(panels)).min(axis=1)
    np.testing.assert_array_equal(low, expected)
