__version__ = "2.0.0rc2.dev0"
