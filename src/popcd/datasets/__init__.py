"""Binary data sets by name, from files, or from arrays."""

from popcd.datasets.files import Dataset, fingerprint
from popcd.datasets.load import NAMES, load
from popcd.datasets.synthetic import artificial_modes, bars_and_stripes

__all__ = ["NAMES", "Dataset", "artificial_modes", "bars_and_stripes", "fingerprint", "load"]
