"""Gettext catalogues: bringing them up to date, and reading them."""
