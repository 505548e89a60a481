"""`python -m mindtorch_npu` is the command `mindtorch-npu`."""

from .main import main

if __name__ == "__main__":
    main()
