"""What programs that torchrun starts import from here. Jobs do not grow or shrink."""
