"""What the training scripts share: tasks, runs, learning curves and their plots."""
