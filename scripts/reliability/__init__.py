"""What scripts/fuzz.py is made of: odd inputs, where they go, and who watches.

odd: odd values · subjects: small models, policies and files to try them on · user_models: models as
users write them, and what goes wrong in them · bugs/: the catalogue of user bugs · entries/:
what is called, by area · registry: the list of entries · verdict: what came of a call · worker: the
process that tries cases · runner: the process that watches workers · reach: which public names are
reached · report: tables and files · soak: what grows over time.
"""
