"""What communication a layout costs."""
