"""``python -m cudnn_compat``: the command ``cudnn-compat``."""

from cudnn_compat.cli import main

if __name__ == "__main__":
    main()
