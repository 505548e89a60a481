"""`python -m mindtorch_npu` is the command `mindtorch-npu`."""

# The part that is in the interpreter: `signal` itself takes some milliseconds to import.
import _signal as signal  # type: ignore[import-not-found]


def entry() -> None:
    """The installed script: Ctrl-C while modules are imported ends it as it ends any program."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main

    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


if __name__ == "__main__":
    entry()
