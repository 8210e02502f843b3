"""The commands of ``robocache``, a file each, and what they share.

Their signatures are read by Typer when they are called: no annotation there is written in a way
that Python 3.9 cannot evaluate.
"""
