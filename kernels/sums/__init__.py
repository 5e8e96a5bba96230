"""Loops over sums, generated: a description of a sum becomes machine code."""
