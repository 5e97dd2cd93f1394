"""An optimizer from scratch: is it right?"""
