"""What is done around models in emulated arithmetic: loss scales, levels, recipes, training, inspection. `softfloat.torch` offers it."""
