"""RDDL descriptions as models: :func:`from_rddl`.

``loading`` parses, ``grounding`` makes a ``description`` of ``expressions`` (whose ``operations``
are RDDL's), ``actions`` tabulates choices, ``intervals`` finds the values that can be reached,
``variables`` replaces variables, ``rewards`` splits the reward, and ``model`` does all of it in
order and compiles what came out.
"""
