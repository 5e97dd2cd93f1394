"""Can a run move to another mesh?"""
