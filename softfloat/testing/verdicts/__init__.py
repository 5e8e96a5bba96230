"""What a device made of vectors: comparison, and the causes of mismatches: `softfloat check`."""

from softfloat.testing.verdicts.cause import Cause
from softfloat.testing.verdicts.causes import causes_of
from softfloat.testing.verdicts.check import check_vectors
from softfloat.testing.verdicts.diagnosis import Finding
from softfloat.testing.verdicts.reports import Mismatch, Report

__all__ = ["Cause", "Finding", "Mismatch", "Report", "causes_of", "check_vectors"]
