"""Learning algorithms, one file each: tensors in, tensors out."""
