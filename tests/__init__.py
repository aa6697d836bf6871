"""The tests; a package, so that another project's top-level "tests" never takes its place."""
