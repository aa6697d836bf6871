"""The compatibility matrix: what works here, with which error, against which tolerance.

``features_*`` say as data what there is, ``checks_*`` compute and compare it, ``rows`` puts both
together, ``run`` judges a row, ``document`` and ``format`` make the JSON, ``render`` the text, and
``environments`` is the table of the versions that it is run with. ``reference`` is one slow, plain
evaluation in float64, ``tolerances`` the one table of allowed differences; tests read both.
"""
