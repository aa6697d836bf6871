"""Engines: what computes. One interface, chosen by the device of the arrays."""
