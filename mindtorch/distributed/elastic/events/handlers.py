"""Owns the handlers of events, by destinations' names."""

import logging

_log_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": logging.NullHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """A destination's handler; KeyError for another name."""
    return _log_handlers[destination]
