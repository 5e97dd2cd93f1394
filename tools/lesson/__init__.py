"""From a lesson's source to its notebooks, built, executed and solved."""
