"""What is fast, measured as ratios in one run, and what training on real data gives."""
