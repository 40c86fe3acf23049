"""What several scripts share.

arguments: environments and variables of a command line · console: tables, and a bar for work that
takes a while · diagram: boxes and arrows · drawing: scenes as pictures · folders: where results
go · intervals: means over seeds · plotting: how plots look · script: how scripts end · workers:
processes that do not outlive a script.
"""
