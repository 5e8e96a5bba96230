"""Tutorials on half and mixed precision as programs, Graphcore's three and MindSpore's: trainings whose every half operation is emulated.

    python -m softfloat.examples.stochastic_rounding {float16,float32} DEPTH
    python -m softfloat.examples.float32_parameter_updates {mixed,float32}
    python -m softfloat.examples.estimator {mixed,float32}
    python -m softfloat.examples.lenet5 {O0,O2,O3,auto}

They need the extra `examples`. `python -m softfloat.examples.rounding_statistic`, which trains nothing and needs the extra `dask`, counts 2^31
stochastic roundings in blocks. `softfloat.examples.data` reads the data sets, and needs NumPy alone.
"""
