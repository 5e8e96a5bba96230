"""Mathematical functions of codes, correctly rounded. `softfloat.bits` offers them."""
