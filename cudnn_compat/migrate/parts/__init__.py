"""What is copied into moved programs. It belongs to them then, and knows nothing of this package.

These are ordinary modules, so that they are linted and tested; what is copied carries no types.
"""
