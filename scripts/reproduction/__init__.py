"""The paper's experiments (section 6): run them, keep their results, and show them.

To run: settings, experiments (what a trial is), heuristics, curve, backends, runner, progress. To
keep: results, provenance. To show: tables, plots, output (both as files), and the page of report,
with figures, glossary and replay.
"""
