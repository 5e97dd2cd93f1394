"""What explorers of the lessons share: a button that asks real devices, and the choice of a layout."""
