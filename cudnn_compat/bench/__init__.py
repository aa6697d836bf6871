"""Speed: one grid of workloads, what else computes them, and how fast each is.

``grid`` says what is measured; ``sides`` are this package and PyTorch's modules, ``stands`` where
they are set up, ``raw`` the library's own calls with nothing around them. ``timing`` takes their
times in turns; ``floors`` says below what no time can be. ``grid_rows``, ``scaling``, ``first`` and
``host`` measure a part each, ``run`` all that is asked for. It makes a record, which ``record``
describes, ``aims`` judges, and ``table`` and ``plots`` show.
"""
