"""Graphcore's tutorial on half and mixed precision as programs: three trainings whose every half operation is emulated.

    python -m softfloat.examples.stochastic_rounding {float16,float32} DEPTH
    python -m softfloat.examples.float32_parameter_updates {mixed,float32}
    python -m softfloat.examples.estimator {mixed,float32}

They need the extra `examples`. `softfloat.examples.data` reads the data sets, and needs NumPy alone.
"""
