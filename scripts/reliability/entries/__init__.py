"""All entries, by area."""

from reliability.entries import (
    bodies,
    constructors,
    files,
    functions,
    learners,
    models,
    other_people,
    planted,
    policies,
    real_worlds,
    shells,
    tables,
    users,
    wrapping,
)

__all__ = [
    "bodies",
    "constructors",
    "files",
    "functions",
    "learners",
    "models",
    "other_people",
    "planted",
    "policies",
    "real_worlds",
    "shells",
    "tables",
    "users",
    "wrapping",
]
