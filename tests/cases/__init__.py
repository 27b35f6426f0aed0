"""Inputs that broke other gateways, replayed against ours: one test or more for each case, named by its id and its source.

Payloads and words are our own; people are made up. What is only rendering, cutting or reading needs no database; what is
about floods, repeats and restarts goes through a whole gateway with the unmodified libraries and the fakes.
"""
