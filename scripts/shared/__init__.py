"""What several scripts share.

arguments: environments and variables of a command line · console: tables, and a bar for work that
takes a while · drawing: scenes as pictures · intervals: means over seeds · plotting: how plots
look.
"""
