"""Pictures of states: what the viewers of the domains are made of.

``viewer`` has the base classes. What stands on a floor is ``things``, which ``flat`` draws in two
dimensions (Pillow) and ``solid`` in three on a ``scene`` (PyBullet, which only ``scene`` touches);
``palette`` holds the colours and what a mask does to them.
"""
