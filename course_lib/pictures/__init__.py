"""Pictures: specs, components or curves in, drawing and text out."""
