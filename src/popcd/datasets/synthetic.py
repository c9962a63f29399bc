"""Artificial data sets of the paper, as generators."""

import numpy as np

from popcd.checks import positive_int


def bars_and_stripes(size: int = 4, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """All `size` x `size` images of full columns and of full rows; the empty and the full image occur twice.

    Reference: MacKay (2002). Returns 2 * 2**size rows of size**2 pixels, each pixel flipped with probability `noise`.

    >>> images = bars_and_stripes()
    >>> images.shape, len(np.unique(images, axis=0))
    ((32, 16), 30)
    """
    size = positive_int("size", size)
    if size > 16:
        raise ValueError(f"size must be at most 16, got {size}: bars and stripes have 2 * 2**size rows")
    codes = np.arange(2**size)[:, None] >> np.arange(size) & 1
    stripes = np.repeat(codes[:, :, None], size, axis=2)
    images = np.concatenate([stripes, stripes.transpose(0, 2, 1)])
    return _flip(images.reshape(-1, size * size).astype(np.uint8), noise, seed)


def artificial_modes(size: int = 16, noise: float = 0.001, seed: int = 0, rows: int = 10_000) -> np.ndarray:
    """Four modes, equally often: all 0, all 1, first half 0 and second 1, and the reverse; then noise.

    Reference: Desjardins et al. (2010); the paper's set is the default. Returns rows x size, each pixel flipped with
    probability `noise`.

    >>> images = artificial_modes()
    >>> images.shape, np.unique(artificial_modes(noise=0.0), axis=0).shape
    ((10000, 16), (4, 16))
    """
    size, rows = positive_int("size", size), positive_int("rows", rows)
    if size % 2 or rows % 4:
        raise ValueError(f"size must be even and rows a multiple of 4, got size={size}, rows={rows}")
    modes = np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], size // 2, axis=1)
    return _flip(np.repeat(modes, rows // 4, axis=0).astype(np.uint8), noise, seed)


def _flip(images: np.ndarray, noise: float, seed: int) -> np.ndarray:
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be a probability, from 0 to 1, got {noise!r}")
    return images ^ (np.random.default_rng(seed).random(images.shape) < noise)
