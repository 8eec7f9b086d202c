"""What outlives a process: checkpoints, artifacts, the effect journal and the index of runs, in one file."""
