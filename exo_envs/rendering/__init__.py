"""Pictures of states: what the viewers of the domains are made of.

``viewer`` and ``scene_viewer`` are the base classes; ``canvas``, ``figures`` and ``slots`` draw in
two dimensions (Pillow), ``scene``, ``bodies`` and ``meshes`` in three (PyBullet, which only
``scene`` touches); ``palette`` holds the colours and what a mask does to them.
"""
