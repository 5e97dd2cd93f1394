"""What is each device storing that it doesn't need?"""
