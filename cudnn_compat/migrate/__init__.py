"""The rewriter: moves programs from the old API to :mod:`cudnn_compat.v2`.

    cudnn-compat migrate program.py package/            # shows a diff
    cudnn-compat migrate --write program.py package/

:func:`migrate_program` does the work on sources in memory. It needs libcst (extra ``migrate``).

====================  ==============================================================================
``program``           the files of one program together: what must move together, what is shared
``rewrite``           one file: finds the uses of old names, asks the rules, collects what they say
``names``             what an expression means: imports, aliases, ``import *``, shadowing
``rule``              what a rule is and what it is told: write new rules against this file
``outline``           what one file tells about the others, read quickly
``hints``             what all files together say about the objects of an old class
``binding``           arguments of a call by the names of the old signature
``file_context``      what a file has already (imports, names) and what it needs (definitions)
``definitions``       the code that goes into a moved program, taken from ``parts/``
``imports``           old imports go, new ones come
``marks``             the comments at places that were left
``rules/``            one rule a file
``parts/``            classes and functions that are copied into a moved program
====================  ==============================================================================
"""

from cudnn_compat.migrate.finding import Finding
from cudnn_compat.migrate.program import Migrated, migrate_program, migrate_source

__all__ = ["Finding", "Migrated", "migrate_program", "migrate_source"]
