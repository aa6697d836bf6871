"""The compatibility matrix: what works here, with which error, against which tolerance.

``reference`` is one slow, plain evaluation in float64, ``tolerances`` the one table of allowed
differences; tests and the matrix read both.
"""
