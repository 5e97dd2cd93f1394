"""Appendix A1: Appendix A1. Estimators."""
