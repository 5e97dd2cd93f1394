"""Layouts: DTensor, one program for all devices."""
