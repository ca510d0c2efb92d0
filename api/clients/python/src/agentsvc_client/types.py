"""The shapes of requests and replies: `TypedDict`s, which are plain dictionaries when the program runs."""

from .api.types import *  # noqa: F403
